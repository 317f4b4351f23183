/**
 * What kwok does with a pod, where its built-in stages do not do: containers and images have IDs, and a container is
 * restarted when the image of the pod changes. A pod is Ready while all its readiness gates are True, as with a kubelet.
 */

type Requirement = { key: string; operator: "In" | "NotIn" | "Exists" | "DoesNotExist"; values?: readonly string[] }

const is = (key: string, value: string): Requirement => ({ key, operator: "In", values: [value] })
const remains: Requirement = { key: ".metadata.deletionTimestamp", operator: "DoesNotExist" }
const started: Requirement = { key: ".status.podIP", operator: "Exists" }

const images = `if [.spec.containers[].image] == [.status.containerStatuses[]?.image] then "same" else "changed" end`
const gates =
  `if ([.spec.readinessGates[]?.conditionType] - [.status.conditions[]? | select(.status == "True") | .type]) == []` +
  ` then "open" else "closed" end`
const ready = `.status.conditions.[] | select( .type == "Ready" ) | .status`

/** The digest of an image is that of its name: whatever plays the agent of the node can say the same. */
const container = `
- name: {{ $item.name | Quote }}
  image: {{ $item.image | Quote }}
  imageID: {{ printf "%s@sha256:%s" (regexReplaceAll "(:[^/:]*)?(@.*)?$" $item.image "") (sha256sum $item.image) | Quote }}
  containerID: {{ printf "containerd://%s" (sha256sum (printf "%s %s %d" $root.metadata.uid $item.name $restarts)) | Quote }}
  ready: true
  started: true
  restartCount: {{ $restarts }}
  state:
    running:
      startedAt: {{ $now | Quote }}`

const start = `
{{ $now := Now }}
{{ $root := . }}
{{ $restarts := 0 }}
observedGeneration: {{ .metadata.generation }}
conditions:
{{ range $type := list "Initialized" "ContainersReady" "Ready" }}
- lastTransitionTime: {{ $now | Quote }}
  status: "True"
  type: {{ $type }}
{{ end }}
{{ range .spec.readinessGates }}
- lastTransitionTime: {{ $now | Quote }}
  status: "True"
  type: {{ .conditionType | Quote }}
{{ end }}
containerStatuses:
{{ range $index, $item := .spec.containers }}${container}
{{ end }}
hostIP: {{ NodeIPWith .spec.nodeName | Quote }}
podIP: {{ PodIPWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) | Quote }}
phase: Running
startTime: {{ $now | Quote }}
`

const restart = `
{{ $now := Now }}
{{ $root := . }}
observedGeneration: {{ .metadata.generation }}
containerStatuses:
{{ range $index, $item := .spec.containers }}
{{ $before := index $root.status.containerStatuses $index }}
{{ if eq $item.image $before.image }}
- {{ YAML $before 1 }}
{{ else }}
{{ $restarts := add1 $before.restartCount }}${container}
{{ end }}
{{ end }}
`

const setReady = (status: "True" | "False") => `
conditions:
- lastTransitionTime: {{ Now | Quote }}
  status: "${status}"
  type: Ready
`

const stage = (name: string, matchExpressions: readonly Requirement[], next: object) => ({
  apiVersion: "kwok.x-k8s.io/v1alpha1",
  kind: "Stage",
  metadata: { name },
  spec: { resourceRef: { apiGroup: "v1", kind: "Pod" }, selector: { matchExpressions }, next },
})

const status = (statusTemplate: string) => ({ statusTemplate })

/** A configuration of kwok. Nodes keep the built-in stages. */
export const restartingPods = [
  stage("pod-start", [remains, { ...started, operator: "DoesNotExist" }], status(start)),
  stage("pod-restart", [remains, started, is(images, "changed")], status(restart)),
  stage("pod-close", [remains, started, is(gates, "closed"), is(ready, "True")], status(setReady("False"))),
  stage("pod-open", [remains, started, is(gates, "open"), is(ready, "False")], status(setReady("True"))),
  stage("pod-delete", [{ ...remains, operator: "Exists" }], { finalizers: { empty: true }, delete: true }),
]
