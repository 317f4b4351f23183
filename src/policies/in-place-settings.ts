import { settingAnnotations } from "#core/in-place/names.ts"
import { type SettingRule, settingRules } from "#core/in-place/settings.ts"
import { inPlaceWorkloads } from "./in-place-marks.ts"
import { named, type ValidatingPolicy } from "./policy.ts"

const names = settingRules.map(({ annotation }) => annotation)
/** What all of them but the strategy begin with. */
const prefix = /^.*\/in-place-/.exec(settingAnnotations.order)![0]

const shown = (text: string) => `(size(${text}) > 80 ? ${text}.substring(0, 80) : ${text})`

/**
 * A value that was there before is left alone: controllers write the same object, and must not be refused for what its
 * owner has written.
 */
const validationOf = ({ annotation, pattern, instead }: SettingRule) => {
  const value = `variables.now['${annotation}']`
  const isOld = `variables.now[?'${annotation}'] == variables.before[?'${annotation}']`
  const isGood = `${value}.matches(r'^\\s*(${pattern})\\s*$')`
  return {
    expression: `!('${annotation}' in variables.now) || ${isOld} || ${isGood}`,
    reason: "Invalid" as const,
    message: `annotation ${annotation} cannot be read: write ${instead}`,
    messageExpression: `'annotation ${annotation} is "' + ${shown(value)} + '": write ${instead}'`,
  }
}

const isKnown = (key: string) =>
  `!${key}.startsWith('${prefix}') || ${key} in variables.known || ${key} in variables.before`
const unknown = `variables.now.filter(key, !(${isKnown("key")}))`
const say = `write one of ${names.map(name => name.slice(name.indexOf("/") + 1)).join(", ")}`

/** Refuses annotations of updates in place that cannot be read, with what to write instead. */
export const inPlaceSettings: ValidatingPolicy = {
  name: "aim-in-place-settings",
  validationActions: ["Deny"],
  spec: {
    // It is asked about every workload: what it cannot judge, the controller reports.
    failurePolicy: "Ignore",
    matchConstraints: { resourceRules: [inPlaceWorkloads("CREATE", "UPDATE")] },
    matchConditions: named({
      annotations: "request.operation == 'CREATE' || object.metadata.?annotations != oldObject.metadata.?annotations",
    }),
    variables: named({
      now: "object.metadata.?annotations.orValue({})",
      before: "request.operation == 'CREATE' ? {} : oldObject.metadata.?annotations.orValue({})",
      known: `[${names.map(name => `'${name}'`).join(", ")}]`,
    }),
    validations: [
      ...settingRules.map(validationOf),
      {
        expression: `${unknown}.size() == 0`,
        reason: "Invalid",
        message: `an annotation ${prefix}… is not known: ${say}`,
        messageExpression: `'annotation ' + ${unknown}[0] + ' is not known: ${say}'`,
      },
    ],
  },
}
