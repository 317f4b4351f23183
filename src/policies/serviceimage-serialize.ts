import { type Phase, type ServiceImageSpec, supersedeAnnotation } from "#api/v1alpha1/serviceimage/index.ts"
import { named, type ValidatingPolicy } from "./policy.ts"
import { changes, serviceImages } from "./serviceimage-changes.ts"

/** Not Halted: a rollout that stopped at a failure can be fixed. */
const underWay: readonly Phase[] = ["InProgress", "RollingBack"]

const variables = named({
  generation: "string(oldObject.metadata.generation)",
  // Not observed yet, or the status is about another generation: it may be about to start an operation.
  isUnobserved: "oldObject.?status.?observedGeneration.orValue(0) != oldObject.metadata.generation",
  phase: "oldObject.?status.?operation.?phase.orValue('')",
  isInProgress: `variables.isUnobserved || variables.phase in [${underWay.map(phase => `'${phase}'`).join(", ")}]`,
  // An annotation of an earlier change names an earlier generation, and has no effect.
  isMeant: `object.metadata.?annotations[?'${supersedeAnnotation}'].orValue('') == variables.generation`,
  ...changes,
  firstTier: "variables.differing.size() > 0 ? variables.differing[0].split(' ')[0] : ''",
  others: "variables.differing.exists(entry, !entry.startsWith(variables.firstTier + ' ')) ? ' and of others' : ''",
  what: [
    "((variables.changesTarget ? ['spec.target'] : [])",
    `(variables.differing.size() > 0 ? ['the image of tier "' + variables.firstTier + '"' + variables.others] : [])).join(' and ')`,
  ].join(" + "),
  operation: [
    "variables.isUnobserved ? 'generation ' + variables.generation + ' has not been observed by the controller'",
    `'operation ' + oldObject.status.operation.id + (variables.phase == 'RollingBack' ? ' is being rolled back' : ' is in progress')`,
  ].join(" : "),
})

/**
 * One operation at a time: applies when target or images change while an operation is in progress. The server compares
 * with the object it replaces, status included, so nothing can change between the check and the write.
 */
const serialize = (mode: ServiceImageSpec["serialize"], after: string) =>
  ({
    matchConstraints: { resourceRules: [serviceImages("UPDATE")] },
    // The old value: a write that switches it off and changes the image is still refused.
    matchConditions: [{ name: "mode", expression: `oldObject.spec.?serialize.orValue('Warn') == '${mode}'` }],
    variables,
    validations: [
      {
        expression:
          "!variables.isInProgress || variables.isMeant || !(variables.changesTarget || variables.differing.size() > 0)",
        // Not Forbidden, which would mean a missing right.
        reason: "Invalid",
        message: "spec.target or an image changes while an operation is in progress",
        messageExpression: `variables.what + ' changes while ' + variables.operation + ${after}`,
      },
    ],
  }) as const

export const serializeEnforce: ValidatingPolicy = {
  name: "aim-serviceimage-serialize-enforce",
  validationActions: ["Deny"],
  // Only an object that the schema refuses makes an expression fail; to accept it would undo Enforce.
  spec: {
    failurePolicy: "Fail",
    ...serialize(
      "Enforce",
      `': wait for it (aim wait si/' + object.metadata.name + '), or overtake it: aim set-image --supersede, or annotate ${supersedeAnnotation}: "' + variables.generation + '"'`,
    ),
  },
}

export const serializeWarn: ValidatingPolicy = {
  name: "aim-serviceimage-serialize-warn",
  validationActions: ["Warn", "Audit"],
  // A warning must not refuse.
  spec: {
    failurePolicy: "Ignore",
    ...serialize(
      "Warn",
      `' and overtakes it; if that is meant, say so: aim set-image --supersede, or annotate ${supersedeAnnotation}: "' + variables.generation + '" (spec.serialize: Enforce would refuse it)'`,
    ),
  },
}
