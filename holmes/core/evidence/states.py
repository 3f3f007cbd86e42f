"""The states that a claim may assert, their words in four languages, and what shows each. Data only.

As in `lexicon.py`, words are in lower case, and `_` joins the words of a phrase.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWords:
    """A state: its words, and what shows it in a record.

    `statuses` are values of a status, phase or state; `reasons` are values of a reason or status, and `opposed` those
    of the contrary. `conditions` are types of conditions and names of fields that are true or false. `ratios` are
    fields like `1/2` that must be full; `above_zero` are numbers. A negative state is the contrary of what its fields
    say; a soft one is not denied by just any other status.
    """

    words: str
    statuses: str = ""
    reasons: str = ""
    opposed: str = ""
    conditions: str = ""
    ratios: str = ""
    above_zero: str = ""
    negative: bool = False
    is_soft: bool = False


STATES: Final = {
    "running": StateWords(
        words="""
        running runs run läuft laufen laufend tourne tournent s'exécute s'exécutent exécute exécutent
        en_cours_d'exécution en_exécution en_ejecución ejecutándose corriendo corre corren se_ejecuta
        se_ejecutan
        """,
        statuses="running",
    ),
    "pending": StateWords(
        words="pending ausstehend en_attente pendiente pendientes wartend",
        statuses="pending containercreating",
    ),
    "ready": StateWords(
        words="ready bereit prêt prête prêts prêtes listo lista listos listas",
        statuses="ready",
        conditions="ready",
        ratios="ready",
    ),
    "notready": StateWords(
        words="notready unready",
        statuses="ready",
        conditions="ready",
        ratios="ready",
        negative=True,
    ),
    "failed": StateWords(
        words="""
        failed fails fail failing schlägt_fehl échoue échouent falla fallan fehlgeschlagen fehlgeschlagene
        gescheitert échoué échouée échoués a_échoué falló fallaron fallido fallida fallidos ha_fallado
        """,
        statuses="failed error",
        conditions="failed",
        is_soft=True,
    ),
    "succeeded": StateWords(
        words="""
        completed succeeded complete abgeschlossen erfolgreich_beendet réussi réussie completado completada
        completados finalizó_con_éxito
        """,
        statuses="completed succeeded complete",
        conditions="complete",
        ratios="completions",
    ),
    "crashloop": StateWords(
        words="""
        crashloopbackoff crash_loop crash-loop crash-looping crashlooping crash_looping crashloop
        boucle_de_crash absturzschleife bucle_de_fallos
        """,
        reasons="crashloopbackoff",
    ),
    "oom": StateWords(
        words="""
        oomkilled oom-killed oom_killed ran_out_of_memory out_of_memory oom oom-kill sans_mémoire
        wegen_speichermangels_beendet manque_de_mémoire falta_de_memoria sin_memoria
        """,
        reasons="oomkilled oomkilling",
    ),
    "imagepull": StateWords(
        words="imagepullbackoff image_pull_back-off",
        reasons="imagepullbackoff",
    ),
    "evicted": StateWords(
        words="""
        evicted verdrängt evakuiert vertrieben expulsé expulsée expulsés évincé évincée évincés desalojado
        desalojada desalojados expulsado expulsada
        """,
        reasons="evicted",
    ),
    "restarted": StateWords(
        words="""
        restarted restarts restart neu_gestartet neustart neustarts redémarré redémarrée redémarrés redémarrage
        redémarrages reiniciado reiniciada reinició se_reinició reiniciados reinicio reinicios
        """,
        above_zero="restarts restartcount",
    ),
    "terminated": StateWords(
        words="terminated beendet terminé terminée terminado terminada terminó se_terminó",
        statuses="terminated",
        is_soft=True,
    ),
    "terminating": StateWords(
        words="terminating",
        statuses="terminating",
    ),
    "waiting": StateWords(
        words="waiting wartet warten esperando attend",
        statuses="waiting crashloopbackoff imagepullbackoff errimagepull containercreating podinitializing",
        is_soft=True,
    ),
    "creating": StateWords(
        words="containercreating being_created",
        statuses="containercreating",
        is_soft=True,
    ),
    "bound": StateWords(
        words="bound gebunden lié liée liés enlazado enlazada vinculado vinculada",
        statuses="bound",
    ),
    "unbound": StateWords(
        words="unbound ungebunden",
        statuses="bound",
        negative=True,
    ),
    "released": StateWords(
        words="released freigegeben",
        statuses="released",
    ),
    "active": StateWords(
        words="active aktiv actif active activo activa",
        statuses="active",
    ),
    "deployed": StateWords(
        words="deployed",
        statuses="deployed",
    ),
    "scheduled": StateWords(
        words="placed scheduled eingeplant planifié planifiée programado planificado programada planificada",
        reasons="scheduled",
        opposed="failedscheduling unschedulable",
        conditions="podscheduled",
        is_soft=True,
    ),
    "unschedulable": StateWords(
        words="unschedulable",
        reasons="unschedulable failedscheduling",
        conditions="unschedulable",
    ),
    "cordoned": StateWords(
        words="cordoned schedulingdisabled scheduling_disabled",
        statuses="schedulingdisabled",
        conditions="unschedulable",
    ),
    "available": StateWords(
        words="available verfügbar disponible disponibles",
        conditions="available",
        above_zero="available availablereplicas numberavailable",
    ),
    "unavailable": StateWords(
        words="unavailable indisponible",
        conditions="available",
        above_zero="available availablereplicas numberavailable",
        negative=True,
    ),
    "progressing": StateWords(
        words="progressing",
        conditions="progressing",
    ),
    "initialized": StateWords(
        words="initialized initialisiert initialisé inicializado",
        conditions="initialized",
    ),
    "suspended": StateWords(
        words="suspended ausgesetzt suspendu suspendue suspendido suspendida pausiert",
        conditions="suspend suspended",
    ),
    "paused": StateWords(
        words="paused pausiert en_pause pausado",
        conditions="paused",
    ),
    "started": StateWords(
        words="started gestartet démarré iniciado",
        reasons="started",
        conditions="started",
        is_soft=True,
    ),
    "pulled": StateWords(
        words="pulled gezogen téléchargée descargada",
        reasons="pulled",
        opposed="imagepullbackoff errimagepull",
        is_soft=True,
    ),
    "crashed": StateWords(
        words="crashed crashes crashing abgestürzt stürzt_ab planté plante se_bloqueó crasheó",
        reasons="error oomkilled crashloopbackoff containercannotrun",
        is_soft=True,
    ),
    "killed": StateWords(
        words="killed getötet tué tuée matado matada",
        reasons="oomkilled killing evicted",
        is_soft=True,
    ),
    "notfound": StateWords(
        words="""
        not_found nicht_gefunden introuvable no_encontrado no_encontrada no_se_encontró couldn't_be_found
        """,
        reasons="notfound",
    ),
    "true": StateWords(
        words="true enabled aktiviert activé activée activado activada habilitado wahr vrai verdadero",
    ),
    "false": StateWords(
        words="false disabled deaktiviert désactivé désactivée desactivado deshabilitado falsch faux falso",
        negative=True,
    ),
    "empty": StateWords(
        words="empty leer vide vacío vacía unset",
    ),
    "warning": StateWords(
        words="warning warnings warnung warnungen avertissement advertencia",
        statuses="warning warn",
        is_soft=True,
    ),
    "error": StateWords(
        words="error errors fehler erreur erreurs errores",
        statuses="error err fatal",
        is_soft=True,
    ),
    "exists": StateWords(
        words="""
        appear appears listed aufgeführt vorkommt kommt figure figurent apparaît aparece aparecen figura exists
        exist existed existiert existieren vorhanden existe existent existen vorliegt present présent présente
        """,
    ),
}
