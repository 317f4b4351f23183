import { metricTemplateCases } from "#test/support/manifests/canary.ts"
import { checkKind } from "#test/support/manifests/check-kind.ts"
import { conditions, MetricTemplate, reasons } from "./index.ts"

checkKind(MetricTemplate, metricTemplateCases, { conditions, reasons })
