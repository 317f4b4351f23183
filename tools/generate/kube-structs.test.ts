import { expect, test } from "vitest"
import { structsOf } from "./kube-structs.ts"

const source = `
// Pod is what runs.
type Pod struct {
	metav1.TypeMeta \`json:",inline"\`
	metav1.ObjectMeta \`json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"\`
	// Spec says what.
	Spec PodSpec \`json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"\`
}

type PodSpec struct {
	Common \`json:",inline" protobuf:"bytes,1,req"\`
	Replicas *int32 \`json:"replicas,omitempty"\`
	Selector *metav1.LabelSelector \`json:"selector"\`
	Policy RestartPolicy \`json:"policy,omitempty"\`
	When metav1.Time \`json:"when,omitempty"\`
	Born metav1.Time \`json:"born,omitempty,omitzero"\`
	Limits ResourceList \`json:"limits,omitempty"\`
	Data map[string][]byte \`json:"data,omitempty"\`
}

type Common struct {
	Containers []Container \`json:"containers" patchStrategy:"merge"\`
}

type RestartPolicy string
type ResourceList map[ResourceName]resource.Quantity
`

test("reads what the schema does not say: types by name, and what is written when it is empty", () => {
  const structs = structsOf(source, "v1")
  expect(Object.fromEntries(structs.get("Pod")!)).toEqual({
    metadata: { goType: "v1.ObjectMeta", zero: {}, omitsZero: true },
    spec: { goType: "v1.PodSpec", zero: {}, omitsZero: true },
  })
  expect(Object.fromEntries(structs.get("PodSpec")!)).toEqual({
    containers: { goType: "[]v1.Container", zero: null, omitsZero: false },
    replicas: { goType: "int32", omitsZero: false },
    selector: { goType: "v1.LabelSelector", zero: null, omitsZero: false },
    policy: { goType: "v1.RestartPolicy", zero: {}, omitsZero: true },
    when: { goType: "v1.Time", zero: null, omitsZero: false },
    born: { goType: "v1.Time", omitsZero: false },
    limits: { goType: "v1.ResourceList", omitsZero: true },
    data: { goType: expect.stringMatching(/^map/), omitsZero: true },
  })
})
