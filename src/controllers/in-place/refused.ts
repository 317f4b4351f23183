import type { Memory } from "./observe.ts"
import type { Action } from "./plan.ts"

/**
 * Which writes a refusal by the server still allows; undefined where it was about another target, and counts no more.
 * What was refused beside the workload is noted on it all the same, and a drained pod that cannot be changed serves
 * meanwhile.
 */
export function allowedBeside(
  held: { readonly message: string },
  refusal: Memory["refusal"],
  isSameTarget: boolean,
): ((action: Action) => boolean) | undefined {
  if (!isSameTarget) return undefined
  if (refusal?.message !== held.message) return () => false
  return action =>
    action.do === "note" || (refusal.what === "patch" && action.do === "pod" && action.write.do === "undrain")
}
