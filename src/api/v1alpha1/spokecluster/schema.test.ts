import { checkKind } from "#test/support/manifests/check-kind.ts"
import { spokeClusterCases } from "#test/support/manifests/cluster-fleet.ts"
import { conditions, reasons, SpokeCluster } from "./index.ts"

checkKind(SpokeCluster, spokeClusterCases, { conditions, reasons })
