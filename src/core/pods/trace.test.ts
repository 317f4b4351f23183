import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { PodFacts, PodTrouble } from "./pod-facts.ts"
import { diagnose, lostWithOther, type NoPod, type Trace, traceOf } from "./trace.ts"

const pod = (fields: Partial<PodFacts> = {}): PodFacts => ({
  resourceVersion: "1",
  owner: "o",
  node: "n1",
  images: ["shop/web:2"],
  pullSecrets: [],
  trouble: undefined,
  crash: undefined,
  crashed: undefined,
  steadySeconds: 0,
  createdAtSeconds: 0,
  isFinished: false,
  isTerminating: false,
  ...fields,
})
const trouble = (reason: PodTrouble["reason"], message = "", isTentative = false) => ({ reason, message, isTentative })
const crashed = trouble("Unhealthy", "it crashed")
const starting = trouble("Unhealthy", "not ready", true)
const notPulled = trouble("ImagePullFailed", "not found")
const noRoom: NoPod = { ...trouble("QuotaExceeded", "full"), images: undefined }

const trace = (pods: PodFacts[], noPods: NoPod[] = [], lostNodes: string[] = []): Trace =>
  traceOf(
    pods.map((each, index) => [`shop/web-${index}`, each] as const),
    noPods,
    node => lostNodes.includes(node),
  )
const words = (of: Trace) => of.troubles.map(({ reason, pods, images }) => `${reason} ${pods} ${images?.join()}`)

describe("the trace of an object", () => {
  test("counts the pods that are not finished", () => {
    expect(trace([pod(), pod({ isTerminating: true }), pod({ isFinished: true })]).pods).toBe(2)
  })

  test("has a trouble once for all pods of the same images, in the same words whatever the order", () => {
    const pods = [
      pod({ trouble: trouble("ImagePullFailed", "b") }),
      pod({ trouble: trouble("ImagePullFailed", "a") }),
      pod({ trouble: notPulled, images: ["shop/web:1"] }),
    ]
    expect(words(trace(pods))).toEqual(["ImagePullFailed 1 shop/web:1", "ImagePullFailed 2 shop/web:2"])
    expect(trace(pods).troubles[1]?.message).toBe("a")
    expect(trace(pods.toReversed())).toEqual(trace(pods))
  })

  test("leaves out what is wrong with terminating pods", () => {
    expect(trace([pod({ trouble: crashed, isTerminating: true })]).troubles).toEqual([])
  })

  test("is bounded, whatever the object's owner makes", () => {
    const many = Array.from({ length: 100 }, (_, index) =>
      pod({ images: [`shop/web:${index}`], trouble: crashed, node: "gone" }),
    )
    const { troubles, lost } = trace(many, [], ["gone"])
    expect([troubles.length, lost.length]).toEqual([8, 8])
    const same = Array.from({ length: 100 }, () => pod({ node: "gone" }))
    expect(trace(same, [], ["gone"]).lost).toMatchObject([{ count: 100, examples: { length: 10 } }])
  })

  test("does not depend on the order of anything", () => {
    const troubles = fc.constantFrom(crashed, starting, notPulled, trouble("Unschedulable"), undefined)
    const images = fc.constantFrom(["a"], ["a", "b"], ["c"])
    const facts = fc.record({ trouble: troubles, images, node: fc.constantFrom("", "n1", "n2") }).map(pod)
    const sets = fc.array(facts, { maxLength: 12 })
    fc.assert(
      fc.property(sets, fc.infiniteStream(fc.nat()), (pods, ranks) => {
        const named = pods.map((each, index) => [`p${index}`, each, ranks.next().value as number] as const)
        const shuffled = named.toSorted((a, b) => a[2] - b[2])
        const of = (list: typeof named) =>
          traceOf(
            list.map(([key, each]) => [key, each] as const),
            [],
            node => node === "n1",
          )
        expect(of(shuffled)).toEqual(of(named))
      }),
    )
  })
})

describe("a diagnosis", () => {
  const cases: Record<string, { pods: PodFacts[]; noPods?: NoPod[]; reason: string | undefined }> = {
    "is none where all is well": { pods: [pod()], reason: undefined },
    "is what is wrong with pods of that image": { pods: [pod({ trouble: crashed })], reason: "Unhealthy" },
    "does not speak of pods of another image": {
      pods: [pod({ images: ["shop/web:1"], trouble: notPulled })],
      reason: undefined,
    },
    "knows an image by another spelling": {
      pods: [pod({ images: ["docker.io/shop/web:2"], trouble: crashed })],
      reason: "Unhealthy",
    },
    "holds for a pod if any of its containers has the image": {
      pods: [pod({ images: ["proxy:1", "shop/web:2"], trouble: crashed })],
      reason: "Unhealthy",
    },
    "is about any image where no pod could be made": { pods: [], noPods: [noRoom], reason: "QuotaExceeded" },
    "is not, where it is known that the pods would have had another": {
      pods: [],
      noPods: [{ ...noRoom, images: ["shop/web:1"] }],
      reason: undefined,
    },
    "puts a pull before a crash": {
      pods: [pod({ trouble: crashed }), pod({ trouble: notPulled })],
      reason: "ImagePullFailed",
    },
    "puts a crash before a full quota": {
      pods: [pod({ trouble: crashed })],
      noPods: [noRoom],
      reason: "Unhealthy",
    },
    "puts a full quota before a pod that may just be starting": {
      pods: [pod({ trouble: starting })],
      noPods: [noRoom],
      reason: "QuotaExceeded",
    },
    "puts a pod that no node takes before one that may just be starting": {
      pods: [pod({ trouble: starting }), pod({ trouble: trouble("Unschedulable") })],
      reason: "Unschedulable",
    },
  }
  for (const [name, { pods, noPods, reason }] of Object.entries(cases))
    test(name, () => expect(diagnose(trace(pods, noPods), "shop/web:2")?.reason).toBe(reason))

  test("says whether to wait for the deadline", () => {
    expect(diagnose(trace([pod({ trouble: starting })]), "shop/web:2")).toEqual(starting)
    expect(diagnose(trace([pod({ trouble: crashed }), pod({ trouble: starting })]), "shop/web:2")).toEqual(crashed)
  })

  test("of nothing is none", () => expect(diagnose(undefined, "shop/web:2")).toBeUndefined())
})

describe("pods on lost nodes", () => {
  test("are those that may still run another image", () => {
    const old = { images: ["shop/web:1"] }
    const of = trace(
      [
        pod({ ...old, node: "gone" }),
        pod({ ...old, node: "gone", isTerminating: true }),
        pod({ ...old, node: "gone", isFinished: true }),
        pod({ node: "gone" }),
        pod(old),
        pod({ ...old, node: "" }),
      ],
      [],
      ["gone", ""],
    )
    expect(lostWithOther(of, "shop/web:2")).toEqual({
      count: 2,
      examples: [
        { key: "shop/web-0", node: "gone" },
        { key: "shop/web-1", node: "gone" },
      ],
    })
    expect(lostWithOther(of, "shop/web:1").count).toBe(1)
    expect(lostWithOther(undefined, "shop/web:1")).toEqual({ count: 0, examples: [] })
  })
})
