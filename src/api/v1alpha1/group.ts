export const group = "autoimagemanager.io"
export const version = "v1alpha1"
