"""The units of time in seconds, by the words and letters that people and programs write for them.

The words are in English, German, Spanish and French, in lower case and without accents.
"""

from __future__ import annotations

from typing import Final

_WORDS: Final = (
    (0.000_000_001, "ns nanosecond nanoseconds nanos"),
    (0.000_001, "us µs microsecond microseconds micros mikrosekunde mikrosekunden microsegundos microsecondes"),
    (0.001, "ms millisecond milliseconds milli millis millisekunde millisekunden milisegundos millisecondes"),
    (1.0, "s sec secs second seconds sek sekunde sekunden segundo segundos seconde secondes"),
    (60.0, "m min mins minute minutes minuten minuto minutos"),
    (3_600.0, "h hr hrs hour hours std stunde stunden hora horas heure heures"),
    (86_400.0, "d day days tag tage tagen dia dias jour jours"),
    (604_800.0, "w week weeks woche wochen semana semanas semaine semaines"),
    (2_592_000.0, "month months monat monate monaten monats mes meses mois"),
    (31_536_000.0, "y year years jahr jahre jahren jahres ano anos an ans"),
)
UNIT_SECONDS: Final = {word: seconds for seconds, words in _WORDS for word in words.split()}
