/** Label or annotation by which a pod asks to be left alone, with the value `true`. */
export const skipMark = "autoimagemanager.io/skip"

/** Annotation on the image of a static pod, which is the kubelet's own: the API server has no say in it. */
export const mirrorMark = "kubernetes.io/config.mirror"
