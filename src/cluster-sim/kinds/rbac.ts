import type { Json } from "../object.ts"
import { age } from "./cells.ts"
import type { Definition } from "./define.ts"
import { edit, editEach, fillZero } from "./edit.ts"
import { validateBinding, validateBindingUpdate, validateRole } from "./policy-validation.ts"

const group = "rbac.authorization.k8s.io"
const apiVersion = `${group}/v1`

const createdAt = (object: Json) => [object.metadata.name, object.metadata.creationTimestamp]

export const role: Definition = {
  apiVersion,
  kind: "Role",
  strategy: {
    allowsCreateOnUpdate: true,
    default: rulesAreThere,
    prepareCreate: noEmptyRules,
    prepareUpdate: noEmptyRules,
    validateCreate: validateRole,
    validateUpdate: validateRole,
  },
  row: createdAt,
}

export const clusterRole: Definition = { ...role, kind: "ClusterRole" }

export const roleBinding: Definition = {
  apiVersion,
  kind: "RoleBinding",
  strategy: {
    allowsCreateOnUpdate: true,
    validateCreate: validateBinding,
    validateUpdate: validateBindingUpdate,
    default: object =>
      editEach(
        edit(object, "roleRef", reference => fillZero(reference, { apiGroup: group })),
        "subjects",
        subject =>
          subject.kind === "User" || subject.kind === "Group" ? fillZero(subject, { apiGroup: group }) : subject,
      ),
  },
  row(object, nowMs) {
    const { roleRef, subjects = [] } = object
    const of = (kind: string) => subjects.filter((subject: Json) => subject.kind === kind)
    return [
      object.metadata.name,
      `${roleRef.kind}/${roleRef.name}`,
      age(object, nowMs),
      of("User")
        .map(({ name }: Json) => name)
        .join(", "),
      of("Group")
        .map(({ name }: Json) => name)
        .join(", "),
      of("ServiceAccount")
        .map(({ namespace, name }: Json) => (namespace ? `${namespace}/${name}` : `/${name}`))
        .join(", "),
    ]
  },
}

export const clusterRoleBinding: Definition = { ...roleBinding, kind: "ClusterRoleBinding" }

/** `rules` has no omitempty: a role without any is written with null. */
function rulesAreThere(object: Json): Json {
  return object.rules === undefined ? { ...object, rules: null } : object
}

/** Stored rules have no empty lists. */
function noEmptyRules(object: Json): Json {
  return object.rules?.length === 0 ? { ...object, rules: null } : object
}
