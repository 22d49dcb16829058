// The alerts, rules and the dashboard of Intentwatch as a mixin. It is made from config/prometheus/rules.yml (rules.json is
// a copy that npm run generate writes) and config/grafana, which are ready to use where the job is called intentwatch.
local rules = import 'rules.json';

{
  _config+:: {
    // Selects the processes of Intentwatch in `up`.
    selector: 'job="intentwatch"',
    // Where the runbook is; %s is the place in it, such as intentwatchdown.
    runbookUrl: 'docs/operations.md#%s',
    // The address of the dashboard in Grafana.
    dashboardUid: 'intentwatch',
  },

  local config = self._config,
  local withRunbook(rule) = rule + {
    expr: std.strReplace(rule.expr, 'job="intentwatch"', config.selector),
    annotations+: { runbook_url: config.runbookUrl % std.asciiLower(rule.alert) },
  },
  local only(kind, change) = {
    groups: [
      group { rules: [change(rule) for rule in group.rules] }
      for group in rules.groups
      if std.objectHas(group.rules[0], kind)
    ],
  },

  prometheusRules+:: only('record', function(rule) rule),
  prometheusAlerts+:: only('alert', withRunbook),
  grafanaDashboards+:: {
    'intentwatch.json': (import '../grafana/intentwatch.json') + { uid: config.dashboardUid },
  },
}
