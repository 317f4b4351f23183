/** The readiness gate by which aim sets a pod to not ready before it disturbs the pod. */
export const readinessGate = "autoimagemanager.io/InPlaceUpdateReady"
