/**
 * Where cluster-sim differs from a real Kubernetes and we leave it at that: case and reason. A case that agrees after
 * all must go from here, or the suite fails. `docs/cluster-sim.md` shows this list.
 */
export const accepted: Record<string, string> = {
  "kubectl: version": "The version ends with `+cluster-sim`, so that it is not mistaken for a real server.",
  "kubectl: logs": "No container runs, so there are no logs. A sentence says so.",
  "kubectl: exec": "No container runs, so there is nothing to go into. A sentence says so.",
  "errors: how a refused change of a pod is shown":
    "The real server appends a diff of its own Go structs. Here the fields that changed are named instead; status, reason and the sentence before it are the same.",
  "kinds: how a refused change of a job's template is shown":
    "The real server prints the whole template as a Go struct, with Go's names and every empty field. Here it is printed as it was written; status, reason and field are the same.",
  "statefulsets: claims that cannot be met": "There is no storage: every claim is bound at once, whatever its class.",
  "crds: an object without spec or kind":
    "Beside the refusal of an object that has no kind, the real server warns of the fields it does not know. Here it is only refused.",
  "errors: unknown fields in patches":
    "The refusal of a strict patch quotes the whole object in the order of Go's struct fields, which the published schema does not tell. Status, reason and the field that is named are the same.",
  "kinds: nodes":
    "A real server marks a new node with the taint `node.kubernetes.io/not-ready` until its kubelet reports. Here nodes are ready from the beginning.",
}
