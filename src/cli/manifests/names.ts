import { grantName, secretsGrantName } from "#core/grant.ts"

/** Names that several manifests, and those of users, refer to. */
export const controllerName = "aim-controller"

/** Where the image has Node and aim; its entrypoint is the two. */
export const imageProgram = { node: "/usr/bin/node", aim: "/app/aim.js" }
export const targetRole = grantName
/** In a namespace that named its pull secrets: the Role that reads them, and its binding. */
export const pullSecretsRole = "aim-pull-secrets"
/** The same for Secrets that Canaries, MetricTemplates and AlertProviders name. */
export const secretsRole = secretsGrantName
/** What a grant includes where its author holds it: many administrators of namespaces do not. */
export const routesRole = "aim-target-routes"

export const aggregateToController = { "rbac.autoimagemanager.io/aggregate-to-controller": "true" }
export const aggregateToTarget = { "rbac.autoimagemanager.io/aggregate-to-target": "true" }

export const partOf = { "app.kubernetes.io/part-of": "autoimagemanager" }

export const controllerSubject = (namespace: string) => ({
  kind: "ServiceAccount",
  name: controllerName,
  namespace,
})

export const targetRoleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: targetRole }

/** Any object as it is printed. */
export type Manifest = { apiVersion: string; kind: string; metadata: Record<string, unknown>; [field: string]: unknown }
