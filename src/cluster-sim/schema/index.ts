export { applyConfiguration, ConfigurationProblem } from "./apply-configuration.ts"
export { type Decoded, type DecodeOptions, decode, type FieldValidation, parseBody } from "./decode.ts"
export { type JsonPatchOperation, JsonPatchProblem, patchedJson } from "./json-patch.ts"
export {
  type ApplyInput,
  applyServerSide,
  isIdleUpdate,
  managerName,
  type TrackInput,
  trackScale,
  trackUpdate,
} from "./managed-fields.ts"
export { openApiSchemas, openApiTypes } from "./openapi.ts"
export { applyPatch, type PatchInput, parsePatch } from "./patch.ts"
export { kubernetesSchema } from "./table.ts"
