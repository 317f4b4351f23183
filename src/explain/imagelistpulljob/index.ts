import { namesOf } from "#api/names.ts"
import type { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { reasons } from "#api/v1alpha1/imagelistpulljob/reasons.ts"
import { resourceOf } from "#runtime/resource.ts"
import type { Explained } from "../explained.ts"
import { explanationOf, ownList } from "../plain.ts"

/** A list is explained by the images that its jobs could not bring to every node; each of them has more to say. */
export const explained: Explained = {
  reading: ({ namespace }) => ({ own: ownList(resourceOf(namesOf("ImageListPullJob")), namespace) }),
  explainer: () => async object => {
    const { status } = object as ImageListPullJob
    const details = (status?.failedImageStatuses ?? []).map(
      ({ name, imagePullJob, message }) => `${name} (ipj/${imagePullJob}): ${message}.`,
    )
    return { ...explanationOf(object, reasons), details }
  },
}
