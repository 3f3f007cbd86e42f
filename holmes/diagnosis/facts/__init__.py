"""Facts for rules: probes, log lines, host names, selectors, references. Contains no rules."""
