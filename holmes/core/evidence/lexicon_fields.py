"""The kinds of objects and the fields that a claim may name. Data only; see `lexicon`."""

from __future__ import annotations

from typing import Final

KINDS: Final = {
    "pod": "pod pods po",
    "deployment": "deployment deployments deploy déploiement déploiements despliegue despliegues",
    "replicaset": "replicaset replicasets rs replica_set replica_sets",
    "statefulset": "statefulset statefulsets sts stateful_set",
    "daemonset": "daemonset daemonsets ds daemon_set",
    "job": "job jobs",
    "cronjob": "cronjob cronjobs cj cron_job",
    "service": "service services svc dienst servicio servicios",
    "endpoints": "endpoint endpoints ep endpointslice endpointslices",
    "ingress": "ingress ingresses ing",
    "node": "node nodes knoten nœud nœuds noeud noeuds nodo nodos",
    "namespace": "namespace namespaces ns namensraum namensräume espace_de_noms espacio_de_nombres",
    "configmap": "configmap configmaps cm config_map",
    "secret": "secret secrets geheimnis secreto secretos",
    "persistentvolumeclaim": "persistentvolumeclaim persistentvolumeclaims pvc pvcs claim claims",
    "persistentvolume": "persistentvolume persistentvolumes pv pvs",
    "storageclass": "storageclass storageclasses sc storage_class",
    "horizontalpodautoscaler": "horizontalpodautoscaler horizontalpodautoscalers hpa hpas autoscaler",
    "poddisruptionbudget": "poddisruptionbudget poddisruptionbudgets pdb pdbs",
    "networkpolicy": "networkpolicy networkpolicies netpol network_policy network_policies",
    "serviceaccount": "serviceaccount serviceaccounts sa service_account service_accounts",
    "resourcequota": "resourcequota resourcequotas quota quotas",
    "event": "event events ev ereignis ereignisse événement événements evento eventos",
    "role": "role roles",
    "rolebinding": "rolebinding rolebindings",
    "release": "release releases",
    "customresourcedefinition": "crd crds customresourcedefinition customresourcedefinitions",
    "container": "container containers conteneur conteneurs contenedor contenedores init_container",
}
FIELDS: Final = {
    "restarts restartcount": """
        restarts restart restart_count restarted neustart neustarts neu_gestartet neustarten redémarrage
        redémarrages redémarré redémarrée redémarrés reinicio reinicios reiniciado reiniciada reinició
        se_reinició restart_counter
        """,
    "exitcode code": """
        exit_code exited_with_code exited_with code exit-code exitcode rückgabewert exit_status beendigungscode
        code_de_sortie código_de_salida código exited code_retour
        """,
    "reason": "reason grund raison motif razón motivo termination_reason",
    "message note": "message nachricht meldung mensaje",
    "status phase state": "status phase state",
    "type": "type typ tipo of_type",
    "image": "image images abbild imagen",
    "node nodename": """
        node nodes assigned_to placed_on knoten nœud nodo node_name runs_on läuft_auf tourne_sur s"exécute_sur
        corre_en scheduled_on placed_on
        """,
    "namespace": "namespace namensraum espace_de_noms espacio_de_nombres",
    "ip podip podips hostip": "ip pod_ip ip_address ip-adresse adresse_ip dirección_ip",
    "clusterip": "cluster_ip cluster-ip",
    "externalip": "external_ip external-ip externe_ip ip_externe ip_externa",
    "ports port containerport": """
        port ports puerto puertos container_port exposes listens_on lauscht_auf écoute_sur escucha_en expone
        """,
    "targetport": "target_port targetport",
    "nodeport": "node_port nodeport",
    "age": """
        age old alt alter âge antigüedad edad vieux vieille created erstellt créé créée creado creada
        exists_since existiert_seit de_antigüedad
        """,
    "desired replicas specreplicas": """
        scaled_to skaliert_auf escalado_a desired desired_replicas gewünscht gewünschte gewünschten souhaité
        souhaités souhaitées voulus deseado deseadas deseados replicas replica replika replikas réplica
        replicats réplicas réplique répliques réplicas_souhaités
        """,
    "current currentreplicas": "current_replicas",
    "ready readyreplicas numberready": """
        ready ready_replicas bereit bereite bereiten bereiter prêt prête prêts prêtes listo lista listos listas
        """,
    "available availablereplicas numberavailable": """
        available available_replicas verfügbar verfügbare verfügbaren disponible disponibles
        """,
    "unavailable unavailablereplicas numberunavailable": """
        unavailable unavailable_replicas nicht_verfügbar
        """,
    "uptodate updatedreplicas": """
        up-to-date updated updated_replicas aktualisiert à_jour actualizado actualizados
        """,
    "capacity storage": "capacity kapazität capacité capacidad storage storage_size speicherplatz",
    "requestsstorage storage": "requested_storage",
    "accessmodes": "access_modes access_mode zugriffsmodus",
    "storageclass storageclassname": """
        storage_class storageclass speicherklasse classe_de_stockage clase_de_almacenamiento
        """,
    "volume volumename claim": "bound_to gebunden_an lié_à enlazado_a volume volumen volumes",
    "endpoints addresses": """
        endpoint endpoints endpunkt endpunkte endpunkten endpoints_list puntos_de_conexión
        """,
    "selector": "selects wählt_aus sélectionne selecciona selector selektor sélecteur",
    "labels": "label labels etikett etiketten étiquettes etiquetas",
    "taints": "taint taints",
    "hosts host": "host hosts",
    "class ingressclassname": "class ingress_class klasse",
    "cpu": "cpu cpus cores prozessor",
    "memory": "memory ram speicher arbeitsspeicher mémoire memoria",
    "cpupercent": "cpu_percent cpu_usage cpu-auslastung",
    "memorypercent": "memory_percent memory_usage",
    "limits": "limit limits grenze limite límite límites memory_limit cpu_limit speicherlimit",
    "requests": """
        request requests anforderung anforderungen requête demande solicitud solicitudes requested
        """,
    "schedule": "schedule zeitplan planification calendario programación",
    "completions": "completions vervollständigungen finalizaciones",
    "duration": "duration dauer durée duración",
    "active": "active_jobs active_pods",
    "minpods minreplicas": "min minimum minimo mínimo minpods min_pods min_replicas",
    "maxpods maxreplicas": "max maximum máximo maxpods max_pods max_replicas maximal",
    "targets": "target targets ziel",
    "version": "version versión kubelet_version",
    "revision": "revision révision revisión",
    "kernelversion": "kernel kernel_version",
    "roles": "role roles rolle rôle rol",
    "age lasttransitiontime starttime startedat": "since seit depuis desde desde_hace",
    "count lastseencount": "count occurrences vorkommen",
    "lastseen": "last_seen zuletzt_gesehen vu_pour_la_dernière_fois",
    "startedat started starttime startedtime": """
        started start gestartet démarré démarrée iniciado inició iniciada
        """,
    "finishedat finished completiontime finishedtime": """
        finished ended beendet endete terminé_à finalizado finalizó completed_at finished_at
        """,
    "allowed allowdisruptions alloweddisruptions disruptionsallowed": """
        allowed_disruptions disruptions_allowed
        """,
    "ownerreferences controlledby": """
        owned_by controlled_by owner gehört gehört_zu controlador contrôlé_par controlado_por wird_verwaltet_von
        propietario
        """,
    "serviceaccount serviceaccountname": """
        service_account dienstkonto compte_de_service cuenta_de_servicio
        """,
    "restartpolicy": "restart_policy",
    "backofflimit": "backoff_limit",
    "parallelism": "parallelism",
    "imagepullpolicy": "image_pull_policy pull_policy",
    "qosclass": "qos_class qos",
    "size": "size größe taille tamaño",
    "level severity lvl": "level log_level",
    "chart": "chart",
    "appversion": "app_version",
}
KIND_OF_HEADER: Final = {
    "pod": "name ready status restarts age",
    "deployment": "name ready uptodate available age",
    "replicaset": "name desired current ready age",
    "daemonset": "name desired current ready uptodate available",
    "job": "name completions duration age",
    "cronjob": "name schedule suspend active lastschedule",
    "service": "name type clusterip externalip ports age",
    "endpoints": "name endpoints age",
    "ingress": "name class hosts address ports age",
    "node": "name status roles age version",
    "persistentvolumeclaim": "name status volume capacity accessmodes",
    "persistentvolume": "name capacity accessmodes reclaimpolicy status claim",
    "horizontalpodautoscaler": "name reference targets minpods maxpods replicas",
    "configmap": "name data age",
    "event": "lastseen type reason object message",
}
"""The columns by which the kind of a table is known."""
