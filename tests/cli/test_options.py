"""The names of options stand in the settings, where messages and the table take them from, and at the commands."""

from __future__ import annotations

import click
import pytest

from holmes.cli.commands.list_commands import toolset
from holmes.cli.commands.questions import SETTING_OPTIONS, ask
from holmes.server.command import serve
from holmes.settings.alerts import SourceSettings
from holmes.settings.server import ServerSettings
from holmes.settings.setting import Setting, setting_of
from holmes.settings.settings import GROUPS

WITH_OPTION = {
    str(setting.file_key): setting
    for group in GROUPS.values()
    if group not in {ServerSettings, SourceSettings}
    for name in group.model_fields
    if (setting := setting_of(group, name)).option
}


def test_the_options_that_are_settings_are_the_settings_that_have_an_option() -> None:
    assert sorted(SETTING_OPTIONS) == sorted(WITH_OPTION)


@pytest.mark.parametrize("setting", WITH_OPTION.values(), ids=WITH_OPTION)
def test_an_option_of_ask_is_called_what_its_setting_says(setting: Setting) -> None:
    (parameter,) = [parameter for parameter in ask.params if parameter.name == setting.file_key]
    assert setting.option in parameter.opts


@pytest.mark.parametrize("command", toolset.commands.values(), ids=toolset.commands)
def test_options_of_other_commands_are_those_of_ask(command: click.Command) -> None:
    known = {str(parameter.name): parameter.opts for parameter in ask.params}
    given = {str(parameter.name): parameter.opts for parameter in command.params}
    assert {name: given[name] for name in given.keys() & known.keys()}.items() <= known.items()
    # Those of `login`, `show` and lists:
    assert given.keys() - known.keys() <= {"server", "browser", "scopes", "name", "is_complete"}


def test_serve_has_the_options_of_the_server_and_those_of_ask() -> None:
    own = {name: setting_of(ServerSettings, name).option for name in ServerSettings.model_fields}
    given = {str(parameter.name): parameter.opts for parameter in serve.params}
    known = {str(parameter.name): parameter.opts for parameter in ask.params}

    assert {name: [option] for name, option in own.items() if option}.items() <= given.items()
    assert {name: given[name] for name in given.keys() & known.keys()}.items() <= known.items()
