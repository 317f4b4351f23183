import { AlertProvider } from "#api/v1alpha1/alertprovider/index.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { MetricTemplate } from "#api/v1alpha1/metrictemplate/index.ts"
import { routeKinds } from "#core/canary/routers/index.ts"
import { mayDeliver, mayPatch, named, type ValidatingPolicy } from "./policy.ts"

type Kind = { readonly group: string; readonly version: string; readonly plural: string }

const rule = ({ group, version, plural }: Kind) => ({
  apiGroups: [group],
  apiVersions: [version],
  // Not its status: that is what the controllers write.
  resources: [plural],
  operations: ["CREATE", "UPDATE"] as const,
  scope: "Namespaced" as const,
})

/** Annotations, labels and finalizers need no more than the right to write the object. */
const specOnly = named({ spec: "request.operation == 'CREATE' || object.spec != oldObject.spec" })

const isOam = "object.spec.?provider.orValue('') == 'oam'"
const hasGateway = "object.spec.?service.?gatewayRefs.orValue([]).size() > 0"

/** A component without a Gateway is routed by the mesh. */
const byProvider = (providers: readonly string[]): string =>
  [
    `object.spec.?provider.orValue('') in [${providers.map(provider => `'${provider}'`).join(", ")}]`,
    ...(providers.includes("smi:v1alpha2") ? [`(${isOam} && !(${hasGateway}))`] : []),
  ].join(" || ")

/** What a Canary has patched, and when. An expression can afford two checks, so each is a validation of its own. */
const patched = [
  ...["Deployment", "StatefulSet", "DaemonSet"].map(kind => ({
    group: "apps",
    resource: `${kind.toLowerCase()}s`,
    when: `object.spec.targetRef.kind == '${kind}'${kind === "Deployment" ? ` || ${isOam}` : ""}`,
  })),
  { group: "", resource: "services", when: "true" },
  ...routeKinds.map(({ group, plural, providers }) => ({
    group,
    resource: plural,
    when: providers.some(provider => provider.startsWith("gatewayapi"))
      ? // Without a provider, gatewayRefs decide.
        `has(object.spec.provider) && object.spec.provider != 'oam' ? object.spec.provider.startsWith('gatewayapi') : ${hasGateway}`
      : byProvider(providers),
  })),
  {
    group: "autoscaling",
    resource: "horizontalpodautoscalers",
    // That of a component's workload is found by itself, and moved to the next one.
    when: `object.spec.?autoscalerRef.?kind.orValue('') == 'HorizontalPodAutoscaler' || ${isOam}`,
  },
  {
    group: "keda.sh",
    resource: "scaledobjects",
    when: "object.spec.?autoscalerRef.?kind.orValue('') == 'ScaledObject'",
  },
]

const mayReadSecret = (name: string) =>
  `authorizer.group('').resource('secrets').namespace(request.namespace).name(${name}).check('get').allowed()`

/**
 * The author must hold the rights that are used: a Canary makes the controller change the workload, its Services and its
 * route. Keys for signatures are used and never shown, but a hook of the author's own would be signed with them.
 */
export const canaryAuthor: ValidatingPolicy = {
  name: "aim-canary-author",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: { resourceRules: [rule(Canary)] },
    matchConditions: specOnly,
    variables: named({
      signed: "object.spec.analysis.?webhooks.orValue([]).exists(each, has(each.secretRef))",
    }),
    validations: [
      ...patched.map(({ group, resource, when }) => {
        const name = group ? `${resource}.${group}` : resource
        const says = `this Canary has ${name} patched, and you may not patch them in`
        return {
          expression: `!(${when}) || ${mayPatch(group, resource)} || ${mayDeliver(Canary)}`,
          reason: "Forbidden" as const,
          message: `${says} its namespace`,
          messageExpression: `'${says} namespace ' + request.namespace`,
        }
      }),
      {
        // One check for any number of hooks, so without a name.
        expression: `!variables.signed || authorizer.group('').resource('secrets').namespace(request.namespace).check('get').allowed()`,
        reason: "Forbidden",
        message: "a hook of this Canary is signed with a Secret, and you may not get secrets in its namespace",
        messageExpression:
          "'a hook of this Canary is signed with a Secret, and you may not get secrets in namespace ' + request.namespace",
      },
    ],
  },
}

/** The content of the Secret goes to the address beside it, so the author must be able to read it already. */
const secretAuthor = (name: string, kind: Kind & { readonly kind: string }, ref: string): ValidatingPolicy => ({
  name,
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: { resourceRules: [rule(kind)] },
    matchConditions: specOnly,
    variables: named({ secret: `object.spec.?${ref}.?name.orValue('')` }),
    validations: [
      {
        expression: `variables.secret == '' || ${mayReadSecret("variables.secret")}`,
        reason: "Forbidden",
        message: `${kind.kind} sends a Secret to its address, and you may not get that Secret`,
        messageExpression: `'${kind.kind} sends Secret ' + variables.secret + ' to its address, and you may not get it in namespace ' + request.namespace`,
      },
    ],
  },
})

export const metricTemplateAuthor = secretAuthor("aim-metrictemplate-author", MetricTemplate, "provider.?secretRef")
export const alertProviderAuthor = secretAuthor("aim-alertprovider-author", AlertProvider, "secretRef")
