import { checkKind } from "#test/support/manifests/check-kind.ts"
import { preCachingConfigCases } from "#test/support/manifests/cluster-fleet.ts"
import { conditions, PreCachingConfig, reasons } from "./index.ts"

checkKind(PreCachingConfig, preCachingConfigCases, { conditions, reasons })
