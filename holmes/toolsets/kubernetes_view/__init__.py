"""What may be seen of Kubernetes objects: a filter between kubectl (or helm) and everything that looks at its output.

The transformer `kubernetes_view` of YAML toolsets, see `forms`. The values of Secrets are removed before any column,
expression or layout is applied, wherever a Secret is: alone, in a list, in a list of lists, inside another object,
copied into a text. Text that kubectl lays out itself goes through the forms `text` and `describe`. It never talks to a
cluster.
"""
