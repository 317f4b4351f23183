import { alertProviderCases } from "#test/support/manifests/canary.ts"
import { checkKind } from "#test/support/manifests/check-kind.ts"
import { AlertProvider, conditions, reasons } from "./index.ts"

checkKind(AlertProvider, alertProviderCases, { conditions, reasons })
