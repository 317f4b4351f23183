import { describe, expect, test } from "vitest"
import { ContainerRecreateRequest } from "#api/v1alpha1/containerrecreaterequest/index.ts"
import { ImageListPullJob } from "#api/v1alpha1/imagelistpulljob/index.ts"
import { ImagePullJob } from "#api/v1alpha1/imagepulljob/index.ts"
import { validate } from "#api/validate.ts"
import { convert } from "./index.ts"
import { type Conversion, isObject, type Json } from "./judged.ts"

const ours = { apiVersion: "autoimagemanager.io/v1alpha1" }
const kinds = [ContainerRecreateRequest, ImagePullJob, ImageListPullJob]

/** Converts, and holds every result to our own schema. */
function converted(value: Json): Conversion {
  const conversion = convert(value)
  for (const object of conversion.ok ? conversion.objects : []) {
    const kind = kinds.find(each => each.kind === object.kind)!
    expect(validate(kind, object)).toMatchObject({ errors: [], warnings: [] })
    expect(kind.spec.safeParse(object.spec)).toMatchObject({ success: true })
  }
  return conversion
}

const metadata = {
  name: "it",
  namespace: "shop",
  labels: { app: "web" },
  annotations: { "example.com/note": "a" },
}
const template = {
  pullSecrets: ["one", "two"],
  parallelism: 3,
  pullPolicy: { timeoutSeconds: 300, backoffLimit: 2 },
  completionPolicy: { type: "Always", activeDeadlineSeconds: 1200, ttlSecondsAfterFinished: 30 },
  sandboxConfig: { labels: { a: "b" }, annotations: { "example.com/c": "d" } },
  imagePullPolicy: "Always",
}
const podSelector = { matchLabels: { app: "x" }, matchExpressions: [{ key: "y", operator: "In", values: ["z"] }] }
const request = {
  podName: "web-0",
  containers: [{ name: "app" }, { name: "side" }],
  strategy: {
    failurePolicy: "Ignore",
    orderedRecreate: true,
    forceRecreate: true,
    terminationGracePeriodSeconds: 31,
    minStartedSeconds: 11,
  },
  activeDeadlineSeconds: 301,
  ttlSecondsAfterFinished: 1801,
}
const pullPolicy = { timeoutSeconds: 61, backoffLimit: 5, ttlSecondsAfterFinished: 62, activeDeadlineSeconds: 63 }
const digest = `sha256:${"0123456789abcdef".repeat(4)}`
const owner = {
  apiVersion: "apps.kruise.io/v1beta1",
  kind: "ImagePullJob",
  namespace: "shop",
  name: "pre",
  uid: "u-1",
}
const ofList = { apiVersion: "apps.kruise.io/v1alpha1", kind: "ImageListPullJob", name: "pre", uid: "u-2" }

type Case = {
  kind: string
  metadata?: Json
  spec: unknown
  status?: unknown
  beside?: Json
  /** Objects that come out, as `kind`, `metadata` and `spec`. */
  gives?: Json[]
  /** Path and a part of the message of each remark, in order. */
  says?: [string, string][]
  /** The same of each problem. */
  refused?: [string, string][]
}

const crr = (spec: Json, rest: Partial<Case> = {}): Case => ({ kind: "ContainerRecreateRequest", spec, ...rest })
const job = (spec: Json, rest: Partial<Case> = {}): Case => ({
  kind: "ImagePullJob",
  spec: { image: "nginx:1", completionPolicy: { type: "Always" }, ...spec },
  ...rest,
})
const list = (spec: Json, rest: Partial<Case> = {}): Case => ({
  kind: "ImageListPullJob",
  spec: { images: ["nginx:1", "busybox:1"], ...spec },
  ...rest,
})
const node = (images: unknown, rest: Partial<Case> = {}): Case => ({
  kind: "NodeImage",
  metadata: { name: "node-1" },
  spec: { images },
  ...rest,
})
const images = (spec: Json, meta: Json = { name: "images-of-node-1" }): Json => ({
  kind: "ImageListPullJob",
  metadata: meta,
  spec: { selector: { names: ["node-1"] }, ...spec },
})
const noNamespace: [string, string] = ["metadata", "images-of-node-1 has no namespace yet"]

const requests: Record<string, Case> = {
  "a request with every field that its author writes": crr(request, {
    gives: [{ kind: "ContainerRecreateRequest", metadata, spec: request }],
  }),
  "the readiness gate of a drained pod is another one": crr(
    { ...request, strategy: { unreadyGracePeriodSeconds: 3 } },
    {
      gives: [
        {
          kind: "ContainerRecreateRequest",
          metadata,
          spec: { ...request, strategy: { unreadyGracePeriodSeconds: 3 } },
        },
      ],
      says: [["spec.strategy.unreadyGracePeriodSeconds", "autoimagemanager.io/InPlaceUpdateReady"]],
    },
  ),
  "what the webhook copied from the pod": crr(
    {
      podName: "web-0",
      containers: [
        {
          name: "app",
          preStop: { exec: { command: ["sh"] } },
          ports: [{ containerPort: 80 }],
          statusContext: { containerID: "containerd://1", restartCount: 1 },
        },
      ],
    },
    {
      metadata: {
        ...metadata,
        labels: { "crr.apps.kruise.io/active": "true", "crr.apps.kruise.io/node-name": "n", app: "web" },
        annotations: { "crr.apps.kruise.io/sync-container-statuses": "[]" },
        finalizers: ["crr.apps.kruise.io/unready-acquired"],
      },
      gives: [
        {
          kind: "ContainerRecreateRequest",
          metadata: { name: "it", namespace: "shop", labels: { app: "web" } },
          spec: { podName: "web-0", containers: [{ name: "app" }] },
        },
      ],
      says: [
        ["spec.containers[0].preStop", "the preStop that the container has"],
        ["spec.containers[0].ports", "from the container"],
        ["spec.containers[0].statusContext", "status.containerRecreateStates"],
        ["metadata.labels[crr.apps.kruise.io/active]", "only OpenKruise"],
        ["metadata.labels[crr.apps.kruise.io/node-name]", "only OpenKruise"],
        ["metadata.annotations[crr.apps.kruise.io/sync-container-statuses]", "only OpenKruise"],
        ["metadata.finalizers", "belongs to the object"],
      ],
    },
  ),
  "a complete request is not made again": crr(request, {
    status: { phase: "Completed" },
    gives: [],
    says: [["status.phase", "would restart the containers again"]],
  }),
  "a request under way": crr(request, {
    status: { phase: "Recreating" },
    gives: [{ kind: "ContainerRecreateRequest", metadata, spec: request }],
    says: [
      ["status.phase", "(Recreating): delete its request"],
      ["status", "the controller writes its own"],
    ],
  }),
  "fields that OpenKruise does not have either": crr(
    { ...request, contianers: [], containers: [{ name: "app", image: "x" }] },
    {
      beside: { data: {} },
      gives: [{ kind: "ContainerRecreateRequest", metadata, spec: { ...request, containers: [{ name: "app" }] } }],
      says: [
        ["spec.containers[0].image", "is not a field"],
        ["spec.contianers", "did you mean containers"],
        ["data", "no such field"],
      ],
    },
  ),
  "a deadline that ours cannot keep": crr(
    { ...request, activeDeadlineSeconds: 20 },
    { refused: [["spec.activeDeadlineSeconds", "must be less than activeDeadlineSeconds"]] },
  ),
  "no containers": crr({ podName: "web-0" }, { refused: [["spec.containers", "at least one container"]] }),
}

const secretsGranted: [string, string] = ["spec.pullSecrets", "aim grant shop --pull-secrets one,two"]

const jobs: Record<string, Case> = {
  "a job with every field, for nodes of pods": job(
    { ...template, podSelector },
    {
      gives: [{ kind: "ImagePullJob", metadata, spec: { image: "nginx:1", ...template, podSelector } }],
      says: [secretsGranted],
    },
  ),
  "a job that never ends, for nodes by labels": job(
    { selector: podSelector, completionPolicy: { type: "Never" } },
    {
      gives: [
        {
          kind: "ImagePullJob",
          metadata,
          spec: { image: "nginx:1", selector: podSelector, completionPolicy: { type: "Never" } },
        },
      ],
    },
  ),
  "names that are repeated": job(
    { pullSecrets: ["one", "two", "one"], selector: { names: ["a", "a", "b"] } },
    {
      gives: [
        {
          kind: "ImagePullJob",
          metadata,
          spec: {
            image: "nginx:1",
            completionPolicy: { type: "Always" },
            pullSecrets: ["one", "two"],
            selector: { names: ["a", "b"] },
          },
        },
      ],
      says: [["spec.selector.names[1]", "a is repeated"], ["spec.pullSecrets[2]", "one is repeated"], secretsGranted],
    },
  ),
  "a namespace that is a command": job(
    { pullSecrets: ["one"] },
    {
      metadata: { name: "it", namespace: "shop; id" },
      gives: [
        {
          kind: "ImagePullJob",
          metadata: { name: "it", namespace: "shop; id" },
          spec: { image: "nginx:1", completionPolicy: { type: "Always" }, pullSecrets: ["one"] },
        },
      ],
      says: [["spec.pullSecrets", "run `aim grant NAMESPACE --pull-secrets one`"]],
    },
  ),
  "a job that has ended": job(
    {},
    {
      status: { completionTime: "2026-01-31T12:00:00Z" },
      gives: [{ kind: "ImagePullJob", metadata, spec: { image: "nginx:1", completionPolicy: { type: "Always" } } }],
      says: [
        ["status.completionTime", "it runs again"],
        ["status", "the controller writes its own"],
      ],
    },
  ),
  "a job of a list": job(
    {},
    {
      metadata: { ...metadata, ownerReferences: [ofList] },
      gives: [],
      says: [["metadata.ownerReferences", "ImageListPullJob pre made it"]],
    },
  ),
  "a list with every field": list(
    { ...template, selector: { names: ["a"] } },
    {
      gives: [
        {
          kind: "ImageListPullJob",
          metadata,
          spec: { images: ["nginx:1", "busybox:1"], ...template, selector: { names: ["a"] } },
        },
      ],
      says: [secretsGranted],
    },
  ),
  "a list with an unknown field and an image twice": list(
    { images: ["nginx:1", "nginx:1"], image: "x" },
    {
      gives: [{ kind: "ImageListPullJob", metadata, spec: { images: ["nginx:1"] } }],
      says: [
        ["spec.images[1]", "nginx:1 is repeated"],
        ["spec.image", "did you mean images"],
      ],
    },
  ),
  // Without its empty list, the job would select every node.
  "no node by name": job({ selector: { names: [] } }, { refused: [["spec.selector.names", "at least one name"]] }),
  "a pull that may take days": job(
    { pullPolicy: { timeoutSeconds: 200_000 } },
    { refused: [["spec.pullPolicy.timeoutSeconds", "from 1 to 86400"]] },
  ),
  "a job without a spec": { kind: "ImagePullJob", spec: undefined, refused: [["spec", "is missing"]] },
}

const nodeImages: Record<string, Case> = {
  "images of jobs come with the jobs": node(
    { nginx: { tags: [{ tag: "1", createdAt: "2026-01-31T12:00:00Z", pullPolicy, ownerReferences: [owner] }] } },
    { gives: [], says: [["spec.images", "1 image not converted: brought by ImagePullJob shop/pre; convert the jobs"]] },
  ),
  "no image": node(undefined, { gives: [], says: [["spec.images", "it lists no image"]] }),
  "images by hand become jobs for the node": node(
    {
      "registry.example.com/app": {
        sandboxConfig: { labels: { a: "b" } },
        pullSecrets: [{ namespace: "shop", name: "old" }],
        tags: [
          {
            tag: "v1",
            createdAt: "2026-01-31T12:00:00Z",
            version: 3,
            imagePullPolicy: "Always",
            pullPolicy,
            pullSecrets: [
              { namespace: "shop", name: "one", mode: "x" },
              { namespace: "other", name: "two" },
              { namespace: "shop", name: "one" },
            ],
          },
          { tag: digest, createdAt: "2026-01-31T12:00:00Z", pullPolicy: { activeDeadlineSeconds: 50 } },
        ],
      },
    },
    {
      metadata: { name: "node-1", uid: "u", labels: { zone: "a" }, annotations: { b: "c" } },
      status: {},
      gives: [
        images(
          {
            images: ["registry.example.com/app:v1"],
            pullSecrets: ["one", "old"],
            pullPolicy: { timeoutSeconds: 61, backoffLimit: 5 },
            completionPolicy: { activeDeadlineSeconds: 63, ttlSecondsAfterFinished: 62 },
            imagePullPolicy: "Always",
            sandboxConfig: { labels: { a: "b" } },
          },
          { name: "images-of-node-1", namespace: "shop" },
        ),
        images(
          {
            images: ["registry.example.com/app:v1"],
            pullSecrets: ["two"],
            pullPolicy: { timeoutSeconds: 61, backoffLimit: 5 },
            completionPolicy: { activeDeadlineSeconds: 63, ttlSecondsAfterFinished: 62 },
            imagePullPolicy: "Always",
            sandboxConfig: { labels: { a: "b" } },
          },
          { name: "images-2-of-node-1", namespace: "other" },
        ),
        images(
          {
            images: [`registry.example.com/app@${digest}`],
            pullSecrets: ["old"],
            pullPolicy: { timeoutSeconds: 50 },
            completionPolicy: { activeDeadlineSeconds: 50 },
            sandboxConfig: { labels: { a: "b" } },
          },
          { name: "images-3-of-node-1", namespace: "shop" },
        ),
      ],
      says: [
        ["spec.images", "2 images of no job: converted"],
        ["spec.images[registry.example.com/app].tags[0].pullSecrets", "Secrets of several namespaces: a job in each"],
        ["spec.images[registry.example.com/app].sandboxConfig", "while jobs of several namespaces want the image"],
        ["spec.images[registry.example.com/app].tags[1].pullPolicy.timeoutSeconds", "lowered from 600 to 50"],
        ["spec.images[registry.example.com/app].tags[0].createdAt", "dropped, as in 1 other image"],
        ["spec.images[registry.example.com/app].tags[0].version", "imagePullPolicy: Always"],
        ["spec.images[registry.example.com/app].tags[0].pullSecrets[0].mode", "aim reads the Secret itself"],
        ["spec.images[registry.example.com/app].tags[0].pullSecrets", "images-of-node-1 is in shop"],
        ["spec.images[registry.example.com/app].tags[0].pullSecrets", "aim grant shop --pull-secrets one,old"],
        ["spec.images[registry.example.com/app].tags[0].pullSecrets", "images-2-of-node-1 is in other"],
        ["spec.images[registry.example.com/app].tags[0].pullSecrets", "aim grant other --pull-secrets two"],
        ["spec.images[registry.example.com/app].pullSecrets", "images-3-of-node-1 is in shop"],
        ["spec.images[registry.example.com/app].pullSecrets", "aim grant shop --pull-secrets old"],
        ["metadata.uid", "belongs to the object"],
        ["metadata.labels", "copies them from the node"],
        ["metadata.annotations", "NodeImage itself is not needed"],
        ["status", "the controller writes its own"],
      ],
    },
  ),
  "images with the same settings are one job, and those of jobs are left out": node(
    { nginx: { tags: [{ tag: "1" }, { tag: "2", ownerReferences: [owner] }] }, busybox: { tags: [{ tag: "1" }] } },
    {
      gives: [images({ images: ["nginx:1", "busybox:1"] })],
      says: [["spec.images", "1 image not converted"], ["spec.images", "2 images of no job"], noNamespace],
    },
  ),
  "unknown fields at every depth": node(
    {
      nginx: {
        hosts: 1,
        sandboxConfig: { lables: {} },
        pullSecrets: [{ name: "s", key: "k" }],
        tags: [{ tag: "1", progress: 1, pullPolicy: { timeout: 1 } }],
      },
    },
    {
      gives: [images({ images: ["nginx:1"], pullSecrets: ["s"], sandboxConfig: {} })],
      says: [
        ["spec.images", "1 image of no job"],
        ["spec.images[nginx].hosts", "no such field"],
        ["spec.images[nginx].tags[0].progress", "no such field"],
        ["spec.images[nginx].tags[0].pullPolicy.timeout", "no such field"],
        ["spec.images[nginx].pullSecrets[0].key", "no such field"],
        noNamespace,
        ["spec.images[nginx].pullSecrets", "aim grant NAMESPACE --pull-secrets s"],
        ["spec.images[nginx].sandboxConfig.lables", "did you mean labels"],
      ],
    },
  ),
  "what is refused names the field that was read": node(
    {
      Nginx: {
        tags: [{ tag: "1", pullPolicy: { backoffLimit: -1, activeDeadlineSeconds: "x" }, imagePullPolicy: "No" }],
      },
    },
    {
      refused: [
        ["spec.images[Nginx].tags[0].tag", "lower case"],
        ["spec.images[Nginx].tags[0].pullPolicy.backoffLimit", "from 0 to 100"],
        ["spec.images[Nginx].tags[0].pullPolicy.activeDeadlineSeconds", "seconds"],
        ["spec.images[Nginx].tags[0].imagePullPolicy", "Always"],
      ],
    },
  ),
  "no name": node({}, { metadata: {}, refused: [["metadata.name", "the name of the node"]] }),
}

const written = ({ kind, metadata: meta = metadata, spec, status, beside }: Case, version: string): Json => ({
  apiVersion: `apps.kruise.io/${version}`,
  kind,
  metadata: meta,
  spec,
  ...(status !== undefined && { status }),
  ...beside,
})

const matching = (pairs: [string, string][] = []) =>
  pairs.map(([path, message]) => ({ path, message: expect.stringContaining(message) }))

for (const [title, cases] of Object.entries({ requests, jobs, nodeImages }))
  describe(title, () => {
    for (const version of ["v1alpha1", "v1beta1"])
      for (const [name, each] of Object.entries(cases))
        test(`${name} (${version})`, () => {
          const conversion = converted(written(each, version))
          if (each.refused)
            expect(conversion.ok ? conversion.objects : conversion.problems).toEqual(
              expect.arrayContaining(matching(each.refused)),
            )
          else
            expect(conversion).toEqual({
              ok: true,
              objects: each.gives?.map(object => ({ ...ours, ...object })),
              remarks: matching(each.says),
            })
        })
  })

test("more images than one list holds are several jobs", () => {
  const tags = (repository: string) =>
    [repository, { tags: Array.from({ length: 100 }, (_, index) => ({ tag: `v${index}` })) }] as const
  const conversion = converted(written(node(Object.fromEntries(["a", "b", "c"].map(tags))), "v1beta1"))
  const objects = conversion.ok ? conversion.objects : []
  expect(objects.map(object => (object.spec as { images: string[] }).images.length)).toEqual([256, 44])
})

test.each(["apps.kruise.io/v2", "kruise.io/v1alpha1"])("%s is not known", apiVersion =>
  expect(convert({ ...written(job({}), ""), apiVersion })).toMatchObject({
    ok: false,
    problems: [{ message: expect.stringContaining("NodeImage of apps.kruise.io (v1alpha1, v1beta1)") }],
  }),
)

describe("whatever stands in a field, it is converted, reported or refused", () => {
  const junk = [undefined, null, "", "junk", -1, 7007, true, [], {}, [null], ["junk"], [{}], { junk: 1 }]
  const full: Case[] = [
    requests["what the webhook copied from the pod"]!,
    crr(request),
    job({ ...template, selector: { names: ["a"] } }),
    list({ ...template, podSelector }),
    nodeImages["images by hand become jobs for the node"]!,
  ]
  for (const each of full)
    test(`${each.kind} of ${Object.keys(each.spec as Json)}`, () => {
      const manifest = written(each, "v1beta1")
      const results = { ok: 0, refused: 0 }
      for (const path of [...placesIn(manifest.metadata, ["metadata"]), ...placesIn(manifest.spec, ["spec"])])
        for (const value of junk) {
          const changed = withAt(manifest, path, value)
          const conversion = converted(changed)
          results[conversion.ok ? "ok" : "refused"]++
          if (conversion.ok) expect([path, value, lostFrom(changed, conversion)]).toEqual([path, value, []])
          else expect(conversion.problems.length).toBeGreaterThan(0)
        }
      expect(Math.min(results.ok, results.refused)).toBeGreaterThan(10)
    })
})

type Place = (string | number)[]

/** Every field and item below a value, with the value itself. */
function placesIn(value: unknown, at: Place): Place[] {
  const inner = Array.isArray(value)
    ? value.flatMap((each, index) => placesIn(each, [...at, index]))
    : isObject(value)
      ? Object.entries(value).flatMap(([name, each]) => placesIn(each, [...at, name]))
      : []
  return [at, ...inner]
}

function withAt(value: Json, [first, ...rest]: Place, written: unknown): Json {
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Json
  copy[first!] = rest.length === 0 ? written : withAt(copy[first!] as Json, rest, written)
  return copy
}

/** Values of the manifest that are in no object that came out, and that no remark calls dropped or changed. */
function lostFrom(manifest: Json, { objects, remarks }: Extract<Conversion, { ok: true }>): string[] {
  if (objects.length === 0) return []
  const kept = JSON.stringify(objects)
  const reported = remarks.filter(({ message }) => /^(dropped|lowered)/.test(message))
  return [...placesIn(manifest.metadata, ["metadata"]), ...placesIn(manifest.spec, ["spec"])].flatMap(place => {
    const value = place.reduce<unknown>((holder, key) => (holder as Json)[key], manifest)
    if (value === undefined || value === null || typeof value === "object") return []
    const path = place
      .map(key => (/^\d+$|[./]/.test(String(key)) ? `[${key}]` : `.${key}`))
      .join("")
      .slice(1)
    const isReported = reported.some(
      remark =>
        path.startsWith(remark.path) ||
        // Said once for all images of a node.
        (remark.message.startsWith("dropped, as in") && place.includes(remark.path.split(".").at(-1)!)),
    )
    return isReported ||
      kept.includes(JSON.stringify(value)) ||
      [":", "@"].some(mark => kept.includes(`${mark}${value}"`))
      ? []
      : [path]
  })
}
