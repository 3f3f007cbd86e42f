import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

/** One node of OpenSearch on loopback, without its launcher: SearchNode HOME PORT. */
public final class SearchNode extends Node {
    private SearchNode(Environment environment) {
        super(environment, List.of(Netty4Plugin.class), true);
    }

    public static void main(String[] arguments) throws Exception {
        Settings settings = Settings.builder()
            .put("path.home", arguments[0])
            .put("http.port", arguments[1])
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            .put("transport.port", "0")
            .put("network.host", "127.0.0.1")
            .put("node.name", "search")
            .put("cluster.name", "tests")
            .put("discovery.type", "single-node")
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        SearchNode node;
        try {
            node = new SearchNode(new Environment(settings, Path.of(arguments[0], "config")));
            node.start();
        } catch (Throwable error) {
            error.printStackTrace();
            System.exit(1);
            return;
        }
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
            } catch (IOException error) {
                error.printStackTrace();
            }
        }));
        Thread.currentThread().join();
    }
}
