import { checkKind } from "#test/support/manifests/check-kind.ts"
import { imagePullJobCases } from "#test/support/manifests/pulls.ts"
import { conditions, ImagePullJob, reasons } from "./index.ts"

checkKind(ImagePullJob, imagePullJobCases, { conditions, reasons })
