import { namesOf } from "#api/names.ts"
import { Canary } from "#api/v1alpha1/canary/index.ts"
import { mayDeliver, named, type ValidatingPolicy } from "./policy.ts"
import { changes, serviceImages } from "./serviceimage-changes.ts"

const judged = (tiers: string, of: string) => `${tiers}.filter(tier, has(tier.analysis)).map(tier, ${of})`
const analysis = "tier.analysis"
/** A part of the question: queries and hooks are given it. */
const label = "tier.?upgradeTier.orValue('')"

const variables = named({
  ...changes,
  isNew: "request.operation == 'CREATE'",
  group: "object.spec.target.apiVersion.split('/')[0]",
  kind: "object.spec.target.kind.lowerAscii()",
  // CEL cannot look up the resource of a kind. These are the plurals that generators of kinds use.
  resource: [
    "variables.kind.matches('[^aeiou]y$') ? variables.kind.substring(0, variables.kind.size() - 1) + 'ies'",
    "variables.kind.matches('(s|x|z|ch|sh)$') ? variables.kind + 'es'",
    "variables.kind + 's'",
  ].join(" : "),
  place: "object.spec.?analysisNamespace.orValue('')",
  analyses: judged("variables.newTiers", analysis),
  // Of an object that is new there is no old one.
  hadAnalyses: `variables.isNew ? [] : ${judged("variables.oldTiers", analysis)}`,
  hadLabels: `variables.isNew ? [] : ${judged("variables.oldTiers", label)}`,
  changesAnalysis: [
    "variables.analyses.size() > 0 && (variables.analyses != variables.hadAnalyses",
    `${judged("variables.newTiers", label)} != variables.hadLabels`,
    "variables.isNew || variables.place != oldObject.spec.?analysisNamespace.orValue(''))",
  ].join(" || "),
  signed: "variables.analyses.exists(each, each.?webhooks.orValue([]).exists(hook, has(hook.secretRef)))",
})

const asks = "this ServiceImage has questions asked on behalf of a namespace, and you may not"
/** Without these no Canary could ask there: the policy of its author asks for Services with whatever target. */
const askers = [
  { verb: "create", group: Canary.group, resource: Canary.plural },
  { verb: "patch", group: "", resource: "services" },
]

const serviceImageKind = namesOf("ServiceImage")

const says = "this ServiceImage has its target patched in every namespace that grants it, and you may not patch"

/**
 * The author must hold the right that is used: an image in every granted namespace runs under the accounts
 * of that namespace. Checked when the target or an image changes; pausing, approving and pacing need no more than
 * the right to patch the ServiceImage. An account that may create Canaries in a namespace, and patch Services there as each of
 * them needs, may have the same asked on its behalf as an analysis does; so an author of an analysis needs that, and for a
 * signed hook the rights of a Canary's author.
 */
export const serviceImageAuthor: ValidatingPolicy = {
  name: "aim-serviceimage-author",
  validationActions: ["Deny"],
  spec: {
    failurePolicy: "Fail",
    matchConstraints: { resourceRules: [serviceImages("CREATE", "UPDATE")] },
    variables,
    validations: [
      {
        expression: [
          "!(variables.isNew || variables.changesTarget || variables.differing.size() > 0)",
          // Without a namespace: in all of them.
          "authorizer.group(variables.group).resource(variables.resource).check('patch').allowed()",
          mayDeliver(serviceImageKind),
        ].join(" || "),
        reason: "Forbidden",
        message: `${says} it in all namespaces`,
        messageExpression: `'${says} ' + variables.resource + '.' + variables.group + ' in all namespaces'`,
      },
      ...askers.map(({ verb, group, resource }) => ({
        expression: [
          "!variables.changesAnalysis",
          `authorizer.group('${group}').resource('${resource}').namespace(variables.place).check('${verb}').allowed()`,
        ].join(" || "),
        reason: "Forbidden" as const,
        message: `${asks} ${verb} ${resource} in that namespace`,
        messageExpression: `'${asks} ${verb} ${resource} in namespace ' + variables.place`,
      })),
      {
        // One check for any number of hooks, so without a name.
        expression: [
          "!(variables.changesAnalysis && variables.signed)",
          "authorizer.group('').resource('secrets').namespace(variables.place).check('get').allowed()",
        ].join(" || "),
        reason: "Forbidden",
        message:
          "a hook of this ServiceImage is signed with a Secret, and you may not get secrets in analysisNamespace",
        messageExpression:
          "'a hook of this ServiceImage is signed with a Secret, and you may not get secrets in namespace ' + variables.place",
      },
    ],
  },
}
