import { checkKind } from "#test/support/manifests/check-kind.ts"
import { imageListPullJobCases } from "#test/support/manifests/pulls.ts"
import { conditions, ImageListPullJob, reasons } from "./index.ts"

checkKind(ImageListPullJob, imageListPullJobCases, { conditions, reasons })
