import { checkKind } from "#test/support/manifests/check-kind.ts"
import { nodeImageCases } from "#test/support/manifests/pulls.ts"
import { conditions, NodeImage, reasons } from "./index.ts"

checkKind(NodeImage, nodeImageCases, { conditions, reasons })
