"""The words that a claim may use and still be checked, in English, German, French and Spanish. Data only.

What is not here, and is no name, number, quote or field of the cited record, cannot be judged: the claim that says it
is *cited* at best. So a word belongs here only if bytes can show what it says. Words are written in lower case; `_`
joins the words of a phrase. The words for states are in `states.py`.
"""

from __future__ import annotations

from typing import Final

FUNCTION_WORDS: Final = """
helm their workload workloads instance instances component components object resource resources item items part
piece name names number amount point moment timestamp operation action overview summary output text setting
settings parameter option flag property annotation definition manifest section block template spec specification
detail details count counter exit termination terminated_with ended_with ending reported_as marked_as shown_as
known_as holds carries bears includes include comprises consists_of comes_with keeps offers provides specifies
specified defines defined configures configured declares declared sets set given located resides lives_in
sits_in sits_on found can_be_seen visible shows_up tells reveals displays indicates confirms throws threw raises
raised returns returned answers responds got receives carries_out happens happening came comes goes_with
asks_for asking based_on as_well presently here's additionally moreover actually indeed precisely overall_status
so_far to_date meanwhile explicitly clearly evidently out using belonging same_time back_to this_time each_time
time_of moment_of day_of date current_state current_status lists_only display_name hence_the via against per_pod
inside within_the upon throughout during regarding concerning latest newest first_seen arbeitslast instanz
instanzen komponente komponenten objekt ressource ressourcen teil name anzahl zeitpunkt angabe übersicht
zusammenfassung einstellung parameter option abschnitt vorlage spezifikation zähler beendigung hält trägt
umfasst besteht_aus verfügt_über verfügt definiert festgelegt gesetzt konfiguriert angegeben eingetragen
vorgegeben findet_sich befindet sichtbar bestätigt wirft gibt_zurück liefert antwortet geschah passiert momentan
zurzeit zudem außerdem tatsächlich genauer bislang bisher dabei davon_sind hierbei laufende laufenden innerhalb
während_des insgesamt_ betreffend dazu darin deren dessen welche welcher welches man wir dass sowohl wurden_als
trat traten erhält bekommt erhielt besagt verweist zählt_als verzeichnet_sind charge_de_travail instance
composant composants objet ressource ressources élément éléments partie nom noms nombre quantité moment
horodatage opération aperçu résumé réglage paramètre option section bloc modèle spécification détail détails
compteur comporte comportent comprend possèdent définit défini définie définis fixé fixée configuré configurée
indiqué indiquée inscrit situé situe visible confirme lève renvoie répond produit s'est_produit arrive
actuellement_en également de_plus effectivement précisément jusqu'ici là ici voici voilà où dans_la qu'il
qu'elle on nous c'est s'agit il_s'agit en_tout_cas celui celle ceux celles ainsi lors pendant durant concernant
utilisant possédant reçoit reçu affiché affichée signalé signalée mentionné retourne retourné obtient
carga_de_trabajo instancia instancias componente componentes objeto recurso recursos elemento elementos parte
nombre nombres número cantidad momento marca_de_tiempo operación resumen ajuste parámetro opción sección bloque
plantilla especificación detalle detalles contador incluye incluyen comprende posee poseen define definido
definida fijado fijada configurado configurada establecido establecida indicado indicada ubicado situado ubicada
visible confirma lanza devuelve devolvió responde produjo se_produjo ocurre actualmente_en además efectivamente
precisamente hasta_ahora ahí aquí donde dónde cuál cuyo cuya cuyos cuyas esto eso ello durante respecto usando
recibe recibió mostrado mostrada señala señalado mencionado obtiene quedó queda quedan sigue_siendo lo_que
los_que las_que gab_es gab lleva llevan wants ones rollout comptent compte zählen zählt cuentan cuenta wünscht
veut quiere hubo il_y_a_eu single any einzigen einzige einziger still already noch schon bereits encore déjà aún
todavía ya yet sigue stuck_in hängt_in hängt bloqué_en bloquée_en bloqué atascado_en mentions mention complains
notes outputs writes wrote gives gave warns erwähnt schreibt ausgibt gibt_aus mentionne écrit donne menciona
escribe da including darunter dont named_as entries_of pod's respectively_at there's every_of themselves whole
exactly_as result's listed_as mit_dem called_for list liste lista variable variables environment
umgebungsvariable environnement entorno var env run_of last_run letzter_lauf dernière_exécution última_ejecución
pu pudo pudieron se konnte konnten under a an the this that these those its it they he there here is are was
were be been being has have had having do does did of in on at for with as which who whose where named called
name_is also both_of them itself own namely currently now says say said shows show showed shown reports report
reported reads contains contain contained prints printed logged logs log line lines entry entries output table
row rows column field value values result listed lists given set_to equal_to equals according_to states stated
see entry_of message_says got gets total_of number_of count_of status to assigned zugewiesen assigné attribué
asignado condition conditions bedingung condición state phase object objects called per its_own their with_a
which_is that_is i.e. namely by der die das den dem des ein eine einen einem einer eines er sie es dieser diese
dieses diesem diesen sein seine seinen ihr ihre ihren ist sind war waren wird werden wurde wurden hat haben
hatte hatten im in am an auf mit von vom für bei beim zum zur als dort hier der_name heißt heisst namens lautet
laut zeigt zeigen zeigte meldet meldeten meldete steht stehen sagt enthält enthalten protokoll zeile zeilen
zustand gemeldet gezeigt derzeit aktuell ausgabe wert werte auch gibt_es es_gibt befindet sich befinden liegt
liegen beträgt betragen tabelle spalte eintrag einträge jeweils_mit besitzt le la les l un une des du de d' l'
j' m' t' à au aux ce cette ces cet il elle ils elles son sa ses leur leurs est sont était étaient a ont avait
avaient été être dans sur en avec pour par que qui dont nommé nommée appelé appelée y_a il_y_a indique indiquent
affiche affichent montre montrent signale signalent contient contiennent dit journal journaux ligne lignes état
statut sortie tableau colonne valeur valeurs se_trouve trouve possède s'élève s'appelle aussi actuellement selon
uhr utc gmt seen observed recorded emitted raised occurred occurs happened received appears appear stands marked
displayed it's they're there's exactly_the emits emit records gesehen beobachtet aufgetreten tritt_auf trat_auf
erscheint erscheinen kommt vor_kommt verzeichnet vu vue observé enregistré émis apparaît apparaissent observado
emitido registrado ocurrió message_is ist_es remains stays bleibt reste permanece ne n' c' s' qu' se
s'exécute_sur vaut el la los las lo un una unos unas del de al este esta estos estas ese esa su sus es son está
están estaba estaban era eran fue fueron ha han había habían sido ser estar en con para por que quien cuyo
llamado llamada llama indica indican muestra muestran mostró informa dice contiene contienen registro registros
línea líneas estado fase salida tabla columna valor valores tiene tienen tenía tenían también actualmente hay
se_encuentra encuentra según se figura aparece aparecen presenta presentan
"""
"""Words that say nothing by themselves."""
LINKS: Final = """
set_to set is_set_to gesetzt_auf fixé_à for für pour para is are was were of at to equals equal_to be been has
have had having its the a an value currently now on in column shows show reports stands_at ist sind war waren
beträgt betragen lautet bei von der die das dem des den im in auf seine ihre wert aktuell spalte zeigt meldet
est sont était vaut de à s' d' l' la le les du des son sa ses valeur en actuellement sur dans colonne affiche
indique es son era fue del el los las su sus valor actualmente al um columna muestra indica
"""
"""Words between a field and its value."""
AFTER_WORDS: Final = "of de d' der des von the la le los las its their sa ses su sus seines ihres"
SHARE_WORDS: Final = "of out the its von den der ihren seinen sur de les des las los sus ses"
"""Words between the numbers of `1 of 3`."""
ONLY_WORDS: Final = "erst only just nur lediglich seulement solo sólo solamente únicamente uniquement"
"""Before a number: exactly this one."""
AGO_WORDS: Final = "ago vor il_y_a hace"
USES_WORDS: Final = """
uses use using used consumes consume verbraucht verbrauchen nutzt nutzen verwendet verwenden benutzt utilise
utilisent consomme consomment usa usan utiliza utilizan consume consumen
"""
OF_WHICH: Final = "of_which of_them of_these davon dont de_los_cuales de_las_cuales de_ellos d'entre_eux parmi_eux"
YET_WORDS: Final = "yet noch encore aún todavía"
"""Neutral in a denial: `not yet ready`."""
DURATION_WORDS: Final = """
ran_for ran lasted took takes lief dauerte dauert a_duré dure duré a_tourné duró tardó corrió_durante run_time
"""
DETERMINERS: Final = "no kein keine keinen keinem keiner keines aucun aucune ningún ninguna"
"""Denials of a thing, not of a verb."""
LINE_WORDS: Final = """
line lines entry entries zeile zeilen logzeilen eintrag einträge ligne lignes entrée entrées línea líneas
entrada entradas
"""
CONJUNCTIONS: Final = """
and und et y e but aber mais pero sowie ainsi_que así_como while während tandis_que mientras although though
however whereas obwohl jedoch hingegen alors_que bien_que aunque sin_embargo
"""
NEGATIONS: Final = """
could_not can_not couldn't konnte_nicht konnten_nicht kann_nicht not no never none neither without cannot isn't
aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't can't nicht nie niemals kein keine keinen
keinem keiner keines ohne pas jamais aucun aucune sans ningún ninguna ninguno nunca jamás sin
"""
DOUBLED_NEGATIONS: Final = "pas_de aucun jamais no ningún ninguna ninguno nunca jamás"
UNJUDGED: Final = """
because since_then due cause caused causes causing reason_why therefore thus so hence why always only just
merely solely healthy unhealthy broken fine ok okay overloaded busy slow fast small big large high low enough
sufficient insufficient too very almost nearly about around roughly approximately likely probably maybe might
may could should would must can before after until then while_still again soon later earlier first if unless
when instead except unlike or nor hardly rarely often sometimes usually mostly some several many few most less
fewer better worse same different other another else respectively similar correct wrong right bad good
unexpected expected normal abnormal leads lead weil wegen durch dadurch daher deshalb ursache verursacht immer
nur bloß gesund kaputt überlastet zu sehr fast etwa ungefähr wohl wahrscheinlich vielleicht könnte sollte müsste
kann nach bis dann wieder bald später früher wenn falls statt außer oder kaum oft manchmal meist einige mehrere
viele wenige gleich ander anderer andere anderen anderes erst zuerst car cause causé causée provoqué provoquée
donc toujours seulement uniquement seul seule sain saine cassé surchargé trop très presque environ probablement
peut pourrait devrait doit avant après jusqu'à ensuite bientôt plus si quand lorsque sauf ou parfois souvent
plusieurs quelques même autre autres porque debido causa causado causada provocó provoca siempre sólo solo
solamente únicamente sano sana roto sobrecargado demasiado muy casi aproximadamente probablemente puede podría
debería debe antes después hasta luego pronto si cuando excepto o u a_veces varios varias algunos algunas mismo
misma otro otra otros otras
"""
"""Causes, degrees, quantities and times that bytes cannot show, whatever stands in them."""
ALL_WORDS: Final = """
all every each alle alles jeder jede jedes sämtliche tous toutes tout toute chaque todos todas todo toda cada
"""
BOTH_WORDS: Final = "both beide beiden les_deux ambos ambas tous_les_deux toutes_les_deux"
TOTAL_WORDS: Final = """
between_them add_up_to adds_up_to sum_up_to in_all taken_together summieren_sich_auf zusammengenommen totalisent
suman à_eux_deux entre_ambos total in_total altogether together sum combined overall insgesamt zusammen gesamt
summe in_summe au_total ensemble somme en_tout en_total juntos juntas suma sumados sumadas conjunto
"""
BETWEEN_WORDS: Final = "between apart zwischen auseinander entre d'écart d'intervalle lag_between"
MORE: Final = """
older_than älter_als plus_vieux_que más_antiguo_que more_than over above mehr_als über plus_de plus_que más_de
más_que greater_than exceeds größer_als
"""
LESS: Final = "less_than fewer_than below weniger_als unter moins_de moins_que menos_de menos_que kleiner_als"
AT_LEAST: Final = "at_least mindestens wenigstens au_moins al_menos por_lo_menos"
AT_MOST: Final = "at_most höchstens au_plus como_máximo"
EXACTLY: Final = "exactly genau exactement exactamente"
LAST_WORDS: Final = """
last previous previously most_recently letzte letzter letzten letztes letztem vorherige vorherigen vorheriger
zuletzt dernier dernière précédent précédente último última anterior
"""
NUMBER_WORDS: Final = {
    0: "zero null zéro cero",
    1: "one once einmal",
    2: "two zwei deux dos twice zweimal",
    3: "three drei trois tres dreimal",
    4: "four vier quatre cuatro viermal",
    5: "five fünf cinq cinco",
    6: "six sechs seis",
    7: "seven sieben sept siete",
    8: "eight acht huit ocho",
    9: "nine neun neuf nueve",
    10: "ten zehn dix diez",
    11: "eleven elf onze once",
    12: "twelve zwölf douze doce",
}
TIMES_WORDS: Final = "times time mal fois veces vez"
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
        node nodes assigned_to placed_on knoten nœud nodo node_name runs_on läuft_auf se_ejecuta_en tourne_sur
        s"exécute_sur corre_en scheduled_on placed_on
        """,
    "namespace": "namespace namensraum espace_de_noms espacio_de_nombres",
    "ip podip podips hostip": "ip pod_ip ip_address ip-adresse adresse_ip dirección_ip",
    "clusterip": "cluster_ip cluster-ip",
    "externalip": "external_ip external-ip externe_ip ip_externe ip_externa",
    "ports port": "port ports puerto puertos exposes listens_on lauscht_auf écoute_sur escucha_en expone",
    "containerport": "container_port container_ports",
    "targetport": "target_port targetport",
    "nodeport": "node_port nodeport",
    "age creationtimestamp": """
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
    "uptodate updated updatedreplicas": """
        up-to-date updated updated_replicas aktualisiert à_jour actualizado actualizados
        """,
    "capacity storage": "capacity kapazität capacité capacidad storage storage_size speicherplatz",
    "requestsstorage storage": "requested_storage",
    "accessmodes": "access_modes access_mode zugriffsmodus",
    "storageclass storageclassname": """
        storage_class storageclass storage-klasse speicherklasse classe_de_stockage clase_de_almacenamiento
        """,
    "volume volumename claim": "bound_to gebunden_an lié_à enlazado_a volume volumen volumes",
    "endpoints addresses": """
        endpoint endpoints endpunkt endpunkte endpunkten endpoints_list puntos_de_conexión
        """,
    "selector": "selects wählt_aus sélectionne selecciona selector selektor sélecteur",
    "events": "event events ereignis ereignisse événement événements evento eventos",
    "data": "data keys schlüssel clés claves",
    "labels": "label labels etikett etiketten étiquettes etiquetas",
    "taints": "taint taints",
    "hosts host": "host hosts",
    "class ingressclassname ingressclass": "class ingress_class klasse clase classe",
    "cpu": "cpu cpus cores prozessor",
    "memory": "memory ram speicher speichers arbeitsspeichers arbeitsspeicher mémoire memoria",
    "cpupercent": "cpu_percent cpu_usage cpu-auslastung",
    "memorypercent": "memory_percent memory_usage",
    "limits": "limit limits grenze limite límite límites speicherlimit",
    "requests": """
        request requests anforderung anforderungen requête demande solicitud solicitudes requested
        """,
    "schedule": "schedule zeitplan planification calendario programación",
    "completions": "completions vervollständigungen finalizaciones",
    "duration": "duration dauer durée duración",
    "active": "active active_jobs active_pods",
    "lastschedule lastscheduletime": """
        last_scheduled last_schedule zuletzt_geplant dernière_planification última_programación
        """,
    "minpods minreplicas": "min minimum minimo mínimo minpods min_pods min_replicas",
    "maxpods maxreplicas": "max maximum máximo maxpods max_pods max_replicas maximal",
    "targets target reference scaletargetref": "target targets ziel scales",
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
        belongs_to appartient_à pertenece_a owned_by controlled_by owner gehört gehört_zu controlador
        contrôlé_par controlado_por wird_verwaltet_von propietario
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
NOUNS: Final = """
probe request requests connection server client database volume mount registry tag certificate scheduler kubelet
process thread query retry retries attempt attempts path url endpoint address host port heap memory disk device
space stack trace exception cause_by code statuscode http response user role token key file directory config
configuration command controller replica set queue worker main pool backend upstream peer
"""
FAILURE_WORDS: Final = """
error err failed failure fail fails failing fatal panic exception refused denied timeout timed unable cannot
invalid unauthorized forbidden traceback crash killed unhealthy backoff back-off
"""
"""Words by which a log entry or an event tells of a failure."""
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
    "namespace": "name status age",
    "secret": "name type data age",
    "serviceaccount": "name secrets age",
    "statefulset": "name ready age",
    "storageclass": "name provisioner reclaimpolicy volumebindingmode",
    "poddisruptionbudget": "name minavailable maxunavailable alloweddisruptions age",
    "networkpolicy": "name podselector age",
    "resourcequota": "name age request limit",
    "release": "name namespace revision updated status chart",
    "event": "lastseen type reason object message",
}
"""The columns by which the kind of a table is known."""
