import { named, type ValidatingPolicy } from "./policy.ts"
import { changes, serviceImages } from "./serviceimage-changes.ts"

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
})

const says = "this ServiceImage has its target patched in every namespace that grants it, and you may not patch"

/**
 * The author must hold the right that is used: an image in every granted namespace runs under the accounts
 * of that namespace. Checked when the target or an image changes; pausing, approving and pacing need no more than
 * the right to patch the ServiceImage.
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
        ].join(" || "),
        reason: "Forbidden",
        message: `${says} it in all namespaces`,
        messageExpression: `'${says} ' + variables.resource + '.' + variables.group + ' in all namespaces'`,
      },
    ],
  },
}
