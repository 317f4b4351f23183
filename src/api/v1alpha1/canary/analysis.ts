import { z } from "zod"
import { decimal, listAtomic, rules } from "../../fields.ts"
import {
  calls,
  duration,
  httpAddress,
  interval,
  secretRef,
  sharedRef,
  texts,
  thresholdRange,
} from "../delivery-fields.ts"
import { maxMetrics, maxName, maxWebhooks } from "./bounds.ts"
import { analysisMatch } from "./service.ts"

/** What a Canary says about the judgement of a new revision. */

/** Metrics that every router has: they need neither a template nor a query. */
const builtInMetrics = ["request-success-rate", "request-duration"] as const

/** In Flagger's order; "" is rollout. */
const hookTypes = [
  "", "confirm-rollout", "pre-rollout", "rollout", "confirm-promotion", "post-rollout", "event", "rollback",
  "confirm-traffic-increase",
] as const // biome-ignore format: a list of words

export type HookType = Exclude<(typeof hookTypes)[number], "">

const percent = (minimum: 0 | 1) =>
  z
    .int()
    .min(minimum)
    .max(100)
    .meta({ format: "int32", hint: `write a whole number from ${minimum} to 100` })

const quoted = (words: readonly string[]) => words.map(word => `'${word}'`).join(", ")

export const builtInNames = quoted(builtInMetrics)

const metric = z
  .object({
    name: z
      .string()
      .min(1)
      .max(maxName)
      .meta({ hint: "write a name; request-success-rate and request-duration need no query" })
      .describe("request-success-rate (in percent), request-duration (in milliseconds), or a name of your own."),
    interval: interval()
      .describe("How far back a measurement looks. It never looks back before the present weight.")
      .default("1m"),
    thresholdRange: thresholdRange().optional(),
    threshold: decimal()
      .describe(
        "Deprecated: thresholdRange. The least request-success-rate, and the most of any other metric. Without both it is 0.",
      )
      .optional(),
    query: z
      .string()
      .max(8192)
      .describe("Deprecated: templateRef. A query for Prometheus, with the functions of a MetricTemplate.")
      .optional(),
    templateRef: sharedRef("a MetricTemplate").describe("The MetricTemplate with the query.").optional(),
    templateVariables: texts({ keys: 64, characters: 1024 })
      .describe("Values for {{ variables.NAME }} in the query.")
      .optional(),
    relativeTo: z
      .enum(["Source"])
      .describe(
        "Source: the query is also asked of the running revision over the same time, and the quotient, new by running, is compared with thresholdRange.",
      )
      .optional(),
  })
  .meta(
    rules(
      {
        rule: `self.name in [${builtInNames}] || has(self.templateRef) || (has(self.query) && self.query != '')`,
        message:
          "only request-success-rate and request-duration are built in: write templateRef: {name: METRICTEMPLATE}, or query",
        fieldPath: ".templateRef",
      },
      {
        rule: "!has(self.relativeTo) || has(self.thresholdRange)",
        message: "the quotient is compared with thresholdRange: write thresholdRange: {max: 1.2}, or min",
        fieldPath: ".thresholdRange",
      },
    ),
  )

/** Hooks at which a run waits for a yes. */
const gates = ["confirm-rollout", "confirm-traffic-increase", "confirm-promotion"]

const webhook = z
  .object({
    name: z
      .string()
      .min(1)
      .max(maxName)
      .describe("A name. Hooks of one type and name are one step: all of them must say yes."),
    type: z.enum(hookTypes).describe("When it is called, and what its answer decides.").default("rollout"),
    url: httpAddress().describe("Where it is sent, by POST."),
    ...calls(),
    muteAlert: z.boolean().describe("Send no alert about this hook.").default(false),
    metadata: texts({ keys: 64, characters: 8192 }).describe("Keys and values that are sent with it.").optional(),
    secretRef: secretRef()
      .describe("A Secret of the same namespace with the key `key`: calls are signed with it.")
      .optional(),
    deadline: duration()
      .describe("For the three confirm hooks: how long the run waits for a yes. Without it: for ever.")
      .optional(),
    onDeadline: z
      .enum(["Fail", "Continue"])
      .describe("At the deadline. Fail: the run fails, and onFailure applies. Continue: the run goes on as with a yes.")
      .default("Fail"),
  })
  .meta(
    rules({
      rule: `!has(self.deadline) || self.type in [${quoted(gates)}]`,
      message: `only ${gates.join(", ")} wait: leave deadline out, or write one of these types`,
      fieldPath: ".deadline",
    }),
  )

const alert = z.object({
  name: z.string().min(1).max(maxName).describe("A name."),
  severity: z
    .enum(["", "info", "warn", "error"])
    .describe("info: all. warn: warnings and errors. error: errors only. Empty: info.")
    .default("info"),
  providerRef: sharedRef("an AlertProvider").describe("The AlertProvider that is sent to."),
})

const sessionAffinity = z
  .object({
    cookieName: z
      .string()
      .min(1)
      .max(256)
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]*$/)
      .meta({ hint: "write the name of a cookie: letters, digits, '-' and '_'" })
      .describe("The cookie that keeps a client at the new revision."),
    primaryCookieName: z
      .string()
      .max(256)
      .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]*$/)
      .meta({ hint: "write the name of a cookie: letters, digits, '-' and '_'" })
      .describe("The cookie that keeps a client at the running revision for one interval. Without it: none.")
      .optional(),
    maxAge: z
      .int()
      .min(0)
      .max(2_147_483_647)
      .meta({ format: "int32", hint: "write seconds, as a whole number" })
      .describe("How many seconds a client keeps the cookie. 0: a day.")
      .default(86_400),
    domain: z.string().max(253).describe("The hosts that get the cookie.").optional(),
    path: z.string().max(1024).describe("The paths that get the cookie.").optional(),
    httpOnly: z.boolean().describe("Scripts of a page cannot read the cookie.").optional(),
    secure: z.boolean().describe("The cookie is sent over https only.").optional(),
    partitioned: z
      .boolean()
      .describe("Browsers keep the cookie apart for each page that embeds the service.")
      .optional(),
    sameSite: z.enum(["Strict", "Lax", "None"]).describe("Whether the cookie is sent from other sites.").optional(),
  })
  .meta(
    rules({
      rule: "!has(self.primaryCookieName) || self.primaryCookieName != self.cookieName",
      message: "one cookie cannot keep a client at both revisions: write another primaryCookieName",
      fieldPath: ".primaryCookieName",
    }),
  )

/** How a new revision is judged, and which way its traffic takes. */
export const analysis = z
  .object({
    interval: interval().describe("How often it is judged, and how long each weight lasts. The least is 10s."),
    threshold: z
      .int()
      .min(0)
      .max(2_147_483_647)
      .meta({ format: "int32", hint: "write how many failed checks end a run" })
      .describe("How many failed checks end a run; they are counted over the whole run. 0: one."),
    iterations: z
      .int()
      .min(1)
      .max(100_000)
      .meta({ format: "int32", hint: "write how many checks must pass, at least 1" })
      .describe("Blue/Green, or with match A/B: how many checks must pass.")
      .optional(),
    stepWeight: percent(1).describe("By how many percent of the requests the weight rises each time.").optional(),
    stepWeights: z
      .array(percent(1))
      .min(1)
      .max(100)
      .meta({
        ...listAtomic,
        ...rules({
          rule: "self.isSorted() && self.all(each, self.exists_one(other, other == each))",
          message: "weights rise: write each once, the smallest first",
        }),
        hint: "write from 1 to 100 weights, the smallest first",
      })
      .describe("The weights themselves, in percent, one after the other.")
      .optional(),
    maxWeight: percent(1).describe("With stepWeight: the last weight before promotion. Without it: 100.").optional(),
    stepWeightPromotion: percent(0)
      .describe("By how many percent the weight rises each time at promotion. 0: in one step.")
      .default(0),
    match: analysisMatch().describe("A/B: requests that go to the new revision.").default([]),
    mirror: z
      .boolean()
      .describe("Blue/Green: the new revision also gets a copy of the requests; its answers are dropped.")
      .default(false),
    mirrorWeight: percent(0).describe("How many percent of the requests are copied; for Istio.").optional(),
    sessionAffinity: sessionAffinity
      .describe("A client that the new revision has answered once stays there.")
      .optional(),
    primaryReadyThreshold: percent(0)
      .describe("How many percent of the running revision's pods must be available.")
      .default(100),
    canaryReadyThreshold: percent(0)
      .describe("How many percent of the new revision's pods must be available.")
      .default(100),
    metrics: z.array(metric).max(maxMetrics).meta(listAtomic).describe("What is measured.").default([]),
    webhooks: z.array(webhook).max(maxWebhooks).meta(listAtomic).describe("What is called and asked.").default([]),
    alerts: z.array(alert).max(32).meta(listAtomic).describe("What is told to people.").default([]),
    initialDelay: duration()
      .describe("How long the first weight lasts before the first measurement. Without it: one interval.")
      .optional(),
    noData: z
      .enum(["Hold", "Fail", "Pass"])
      .describe(
        "A query that finds nothing. Hold: wait, and fail at progressDeadlineSeconds. Fail: a failed check. Pass: a good one.",
      )
      .default("Hold"),
    errorLimit: z
      .int()
      .min(1)
      .max(1000)
      .meta({ format: "int32", hint: "write a whole number from 1 to 1000" })
      .describe(
        "After this many errors of a metric service in a row, an alert is sent. The weight is held from the first.",
      )
      .default(4),
  })
  .meta(
    rules(
      {
        rule: "!self.mirror || !has(self.sessionAffinity)",
        message: "a copied request has no client that could stay: leave mirror or sessionAffinity out",
        fieldPath: ".sessionAffinity",
      },
      {
        rule: "self.match.size() == 0 || !has(self.sessionAffinity)",
        message: "match decides which revision a client gets: leave match or sessionAffinity out",
        fieldPath: ".sessionAffinity",
      },
    ),
  )
