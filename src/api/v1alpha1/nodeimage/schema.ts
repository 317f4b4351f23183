import { z } from "zod"
import { ageColumn, messageColumn } from "../../columns.ts"
import { count, listAtomic, listMap, rules, statusBase, text, timestamp, word } from "../../fields.ts"
import { defineKind, type ObjectOf } from "../../kind.ts"
import { namesOf } from "../../names.ts"
import {
  backoffLimit,
  bytes,
  imagePullPolicy,
  maxBytes,
  maxImages,
  priority,
  pullTimeoutSeconds,
  sandboxConfig,
  seconds,
} from "../pull-fields.ts"
import type { ConditionType, Reason } from "./reasons.ts"

/** Jobs that want the same image on the same node. */
const maxOwners = 64
const maxTagsOfImage = 64
/** Four accounts with the longest tokens that registries give out, sealed and in base64. */
const sealedMaxLength = 32_768

const uid = () =>
  z
    .string()
    .max(64)
    .regex(/^[A-Za-z0-9-]*$/)
const dnsName = () =>
  z
    .string()
    .max(253)
    .regex(/^[a-z0-9.-]*$/)
const base64 = (maxLength: number) =>
  z
    .string()
    .max(maxLength)
    .regex(/^[A-Za-z0-9+/_=-]*$/)

/** A tag, a digest, or a tag with a digest behind it. */
const tag = () =>
  z
    .string()
    .min(1)
    .max(128 + "@sha512:".length + 128)
    .regex(
      /^([A-Za-z0-9_][-A-Za-z0-9_.]{0,127}(@sha(256|384|512):[a-f0-9]{64,128})?|sha(256|384|512):[a-f0-9]{64,128})$/,
    )
    .meta({ hint: "write a tag such as v2, or a digest: sha256: and 64 hexadecimal digits" })

const owner = z.object({
  apiVersion: z.string().max(128).describe("The API group and version of the job.").optional(),
  kind: word<string>(63).describe("The kind of the job.").optional(),
  namespace: dnsName().describe("The namespace of the job.").default(""),
  name: dnsName().describe("The name of the job."),
  uid: uid().describe("Which one: a job made anew under its name is another one."),
})

const sealed = z.object({
  job: uid().describe("The job whose pull secrets these are."),
  key: base64(64).describe("The agent's key that they were sealed to, as in `status.publicKey`."),
  box: base64(sealedMaxLength).describe("The credentials. The agent with that key can open it, and nothing else can."),
})

const imageTag = z.object({
  tag: tag().describe("The tag. A digest (`sha256:…`) is written as the tag."),
  createdAt: timestamp().describe("When it was first wanted.").optional(),
  version: count(2_147_483_647).describe("A higher number than in the status asks for another pull.").default(0),
  imagePullPolicy: imagePullPolicy(),
  priority: priority(),
  ownerReferences: z
    .array(owner)
    .max(maxOwners)
    .meta(listMap("uid"))
    .describe("The jobs that want it. Without any it stays until it is removed by hand, or by its time to live.")
    .default([]),
  pullPolicy: z
    .object({
      timeoutSeconds: pullTimeoutSeconds(),
      backoffLimit: backoffLimit(),
      ttlSecondsAfterFinished: seconds(
        "The entry is removed this long after its pull has ended, unless a job wants it: a job's entries end with the job. The image stays.",
      ),
      activeDeadlineSeconds: seconds("All attempts together may take this long."),
    })
    .describe("How long and how often the node tries.")
    .prefault({}),
  sealedCredentials: z
    .array(sealed)
    .max(8)
    .meta(listMap("job"))
    .describe("Credentials of jobs with pull secrets. They are removed when the pull has ended.")
    .optional(),
})

const image = z.object({
  tags: z.array(imageTag).max(maxTagsOfImage).meta(listMap("tag")).describe("Its tags and digests.").default([]),
  sandboxConfig: sandboxConfig().optional(),
})

const spec = z.object({
  images: z
    .record(z.string(), image)
    .meta({
      maxProperties: maxImages,
      hint: `write at most ${maxImages} images`,
      ...rules({
        rule: `self.map(name, self[name].tags.size()).sum() <= ${maxImages}`,
        message: `a node is given at most ${maxImages} images at a time`,
      }),
    })
    .describe("The images that are wanted on the node, by their repository.")
    .default({}),
})

const tagStatus = z.object({
  tag: tag().describe("The tag or digest, as in the spec."),
  version: count(2_147_483_647).describe("The version of the spec that this is about.").default(0),
  phase: z
    .enum(["Waiting", "Pulling", "Succeeded", "Failed"])
    .describe("Waiting for its turn or for the next attempt, Pulling, Succeeded or Failed."),
  reason: word<Reason>(24).describe("Why it is not there, or `MayBeCollected`.").optional(),
  message: text(256).describe("The same, in a sentence.").optional(),
  attempts: count(999).describe("How many attempts have ended.").default(0),
  progress: count(100)
    .describe("Percent of the bytes that are known to be needed; only where the bytes below are of this pull alone.")
    .optional(),
  transfer: z
    .object({
      doneBytes: bytes(maxBytes).describe("Bytes that were fetched."),
      totalBytes: bytes(maxBytes)
        .describe("Bytes of all layers whose transfer has begun; absent where one is not known.")
        .optional(),
      pulls: count(maxImages).describe(
        "How many pulls of the node these bytes are for, together. The runtime does not report which of several a layer is for.",
      ),
    })
    .describe("What was fetched so far, on containerd.")
    .optional(),
  startTime: timestamp().describe("When the first attempt began.").optional(),
  completionTime: timestamp().describe("When it ended.").optional(),
  imageID: z
    .string()
    .max(512)
    .regex(/^[!#-%'-;=?-[\]-~]*$/)
    .describe("What the runtime answered for it after the pull: the image's ID.")
    .optional(),
  digest: z
    .string()
    .max(71)
    .regex(/^sha256:[a-f0-9]{64}$/)
    .describe("The digest that it has in its repository: what the kubelet reports for a container that runs it.")
    .optional(),
})

const status = z.object({
  ...statusBase<ConditionType, Reason>({ conditions: 2, message: 256 }),
  publicKey: base64(64)
    .describe("The agent's key, made at its start: credentials for this node are sealed to it.")
    .optional(),
  runtime: z.string().max(128).describe("The container runtime and its version.").optional(),
  desired: count(maxImages).describe("How many images are wanted.").default(0),
  succeeded: count(maxImages).describe("How many are there.").default(0),
  failed: count(maxImages).describe("How many could not be pulled.").default(0),
  pulling: count(maxImages).describe("How many are being pulled.").default(0),
  waiting: count(maxImages).describe("How many wait.").default(0),
  firstSyncStatus: z
    .object({
      syncAt: timestamp().describe("When the last of them ended."),
      status: z.enum(["Succeeded", "Failed"]).describe("Failed: at least one could not be pulled."),
      message: text(256).describe("The same, in a sentence.").default(""),
    })
    .describe("How the first images of the node ended: written once, when none was waiting or being pulled any more.")
    .optional(),
  imageStatuses: z
    .record(
      z.string(),
      z.object({
        tags: z
          .array(tagStatus)
          .max(maxTagsOfImage)
          .meta(listAtomic)
          .describe("One for each tag of the spec that the agent has seen.")
          .default([]),
      }),
    )
    .meta({ maxProperties: maxImages })
    .describe("How it stands with each image.")
    .default({}),
})

export const NodeImage = defineKind({
  ...namesOf("NodeImage"),
  description:
    "A NodeImage lists the images that are wanted on the node of its name, and what the node's agent says of each.",
  printerColumns: [
    { name: "Desired", type: "integer", jsonPath: ".status.desired" },
    { name: "Pulling", type: "integer", jsonPath: ".status.pulling" },
    { name: "Succeeded", type: "integer", jsonPath: ".status.succeeded" },
    { name: "Failed", type: "integer", jsonPath: ".status.failed" },
    ageColumn,
    messageColumn,
  ],
  spec,
  status,
})

export type NodeImage = ObjectOf<typeof NodeImage>
export type NodeImageSpec = NodeImage["spec"]
export type NodeImageStatus = NonNullable<NodeImage["status"]>
export type ImageTag = NodeImageSpec["images"][string]["tags"][number]
export type TagStatus = NodeImageStatus["imageStatuses"][string]["tags"][number]
