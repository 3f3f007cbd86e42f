"""The words that a claim may use and still be checked, in English, German, French and Spanish. Data only.

What is not here, and is no name, number, quote or field of the cited record, cannot be judged: the claim that says it
is *cited* at best. So a word belongs here only if bytes can show what it says. Words are written in lower case; `_`
joins the words of a phrase.
"""

from __future__ import annotations

from typing import Final

FUNCTION_WORDS: Final = """
a an the this that these those its it they he there here is are was were be been being has have had having do
does did of in on at for with as which who whose where named called name_is also both_of them itself own namely
currently now says say said shows show showed shown reports report reported reads contains contain contained
prints printed logged logs log line lines entry entries output table row rows column field value values result
listed lists given set_to equal_to equals according_to states stated see entry_of message_says got gets total_of
number_of count_of status to assigned zugewiesen assigné attribué asignado condition conditions bedingung
condición state phase object objects called reached per its_own their with_a which_is that_is i.e. namely by der
die das den dem des ein eine einen einem einer eines er sie es dieser diese dieses diesem diesen sein seine
seinen ihr ihre ihren ist sind war waren wird werden wurde wurden hat haben hatte hatten im in am an auf mit von
vom für bei beim zum zur als dort hier der_name heißt heisst namens lautet laut zeigt zeigen zeigte meldet
meldeten meldete steht stehen sagt enthält enthalten protokoll zeile zeilen zustand gemeldet gezeigt derzeit
aktuell ausgabe wert werte auch gibt_es es_gibt befindet sich befinden liegt liegen beträgt betragen tabelle
spalte eintrag einträge jeweils_mit besitzt le la les l un une des du de d' l' j' m' t' à au aux ce cette ces
cet il elle ils elles son sa ses leur leurs est sont était étaient a ont avait avaient été être dans sur en avec
pour par que qui dont nommé nommée appelé appelée y_a il_y_a indique indiquent affiche affichent montre montrent
signale signalent contient contiennent dit journal journaux ligne lignes état statut sortie tableau colonne
valeur valeurs se_trouve trouve possède s'élève s'appelle aussi actuellement selon uhr utc gmt seen observed
recorded emitted raised occurred occurs happened received appears appear stands marked displayed it's they're
there's exactly_the emits emit records gesehen beobachtet aufgetreten tritt_auf trat_auf erscheint erscheinen
kommt vor_kommt verzeichnet vu vue observé enregistré émis apparaît apparaissent observado emitido registrado
ocurrió message_is ist_es remains stays bleibt reste permanece ne n' c' s' qu' se s'exécute_sur vaut el la los
las lo un una unos unas del de al este esta estos estas ese esa su sus es son está están estaba estaban era eran
fue fueron ha han había habían sido ser estar en con para por que quien cuyo llamado llamada llama indica
indican muestra muestran mostró informa dice contiene contienen registro registros línea líneas estado fase
salida tabla columna valor valores tiene tienen tenía tenían también actualmente hay se_encuentra encuentra
según se figura aparece aparecen presenta presentan
"""
"""Words that say nothing by themselves."""
LINKS: Final = """
is are was were of at to equals equal_to be been has have had having its the a an value currently now on in
column shows show reports stands_at ist sind war waren beträgt betragen lautet bei von der die das dem des den
im in auf seine ihre wert aktuell spalte zeigt meldet est sont était vaut de à s' d' l' la le les du des son sa
ses valeur en actuellement sur dans colonne affiche indique es son era fue del el los las su sus valor
actualmente al um columna muestra indica
"""
"""Words between a field and its value."""
SHARE_WORDS: Final = "of out the its von den der ihren seinen sur de les des las los sus ses"
"""Words between the numbers of `1 of 3`."""
ONLY_WORDS: Final = "only just nur lediglich seulement solo sólo solamente únicamente uniquement"
"""Before a number: exactly this one."""
AGO_WORDS: Final = "ago vor il_y_a hace"
USES_WORDS: Final = """
uses use using used consumes consume verbraucht verbrauchen nutzt nutzen verwendet verwenden benutzt utilise
utilisent consomme consomment usa usan utiliza utilizan consume consumen
"""
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
CONJUNCTIONS: Final = (
    "and und et y e but aber mais pero sowie ainsi_que así_como while während tandis_que mientras plus_also"
)
NEGATIONS: Final = """
not no never none neither without cannot isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't
can't nicht nie niemals kein keine keinen keinem keiner keines ohne pas jamais aucun aucune sans ningún ninguna
ninguno nunca jamás sin
"""
DOUBLED_NEGATIONS: Final = "pas_de aucun jamais no ningún ninguna ninguno nunca jamás"
UNJUDGED: Final = """
because since_then due cause caused causes causing reason_why therefore thus so hence why always only just
merely solely healthy unhealthy broken fine ok okay overloaded busy slow fast small big large high low enough
sufficient insufficient too very almost nearly about around roughly approximately likely probably maybe might
may could should would must can before after until then while_still still again already soon later earlier first
if unless when instead except unlike or nor hardly rarely often sometimes usually mostly some several many few
most less fewer better worse same different other another else respectively similar correct wrong right bad good
unexpected expected normal abnormal leads lead weil wegen durch dadurch daher deshalb ursache verursacht immer
nur bloß gesund kaputt überlastet zu sehr fast etwa ungefähr wohl wahrscheinlich vielleicht könnte sollte müsste
kann nach bis dann noch wieder schon bereits bald später früher wenn falls statt außer oder kaum oft manchmal
meist einige mehrere viele wenige gleich ander anderer andere anderen anderes erst zuerst car cause causé causée
provoqué provoquée donc toujours seulement uniquement seul seule sain saine cassé surchargé trop très presque
environ probablement peut pourrait devrait doit avant après jusqu'à ensuite encore déjà bientôt plus si quand
lorsque sauf ou parfois souvent plusieurs quelques même autre autres porque debido causa causado causada provocó
provoca siempre sólo solo solamente únicamente sano sana roto sobrecargado demasiado muy casi aproximadamente
probablemente puede podría debería debe antes después hasta luego aún todavía ya pronto si cuando excepto o u
veces varios varias algunos algunas mismo misma otro otra otros otras
"""
"""Causes, degrees, quantities and times that bytes cannot show, whatever stands in them."""
ALL_WORDS: Final = """
all every each alle alles jeder jede jedes sämtliche tous toutes tout toute chaque todos todas todo toda cada
"""
BOTH_WORDS: Final = "both beide beiden les_deux ambos ambas tous_les_deux toutes_les_deux"
TOTAL_WORDS: Final = """
total in_total altogether together sum combined overall insgesamt zusammen gesamt summe in_summe au_total
ensemble somme en_tout en_total juntos juntas suma sumados sumadas conjunto
"""
BETWEEN_WORDS: Final = "between apart zwischen auseinander entre d'écart d'intervalle lag_between"
MORE: Final = """
older_than älter_als plus_vieux_que más_antiguo_que more_than over above mehr_als über plus_de plus_que más_de
más_que greater_than exceeds größer_als
"""
LESS: Final = "less_than fewer_than under below weniger_als unter moins_de moins_que menos_de menos_que kleiner_als"
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
