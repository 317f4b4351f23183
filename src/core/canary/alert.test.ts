import { expect, test } from "vitest"
import { alertFor, isMeantFor, type Message, type Severity } from "./alert.ts"

const severities: Severity[] = ["info", "warn", "error"]

test.each([
  ["info", ["info", "warn", "error"]],
  ["warn", ["warn", "error"]],
  ["error", ["error"]],
  ["", ["info", "warn", "error"]],
  [undefined, ["info", "warn", "error"]],
] as const)("an alert with severity %j gets %j", (asked, expected) =>
  expect(severities.filter(each => isMeantFor(each, asked))).toEqual(expected),
)

const subject = { name: "web", namespace: "shop" }
const message: Message = { severity: "error", text: "rolled <back>", fields: [{ name: "Weight", value: "20" }] }
const sent = (
  type: "slack" | "msteams" | "discord" | "rocket" | "gchat",
  more: Partial<Message> = {},
  address = "https://h.test/a",
) => {
  const request = alertFor({ type, channel: "general", username: "flagger" }, address, subject, { ...message, ...more })
  return request && { url: request.url, body: JSON.parse(request.body) }
}
const attachment = {
  author_name: "web.shop",
  text: "rolled <back>",
  mrkdwn_in: ["text"],
  fields: [{ title: "Weight", value: "20", short: false }],
}
const slack = { channel: "general", username: "flagger", icon_emoji: ":rocket:" }

test("the form of each receiver", () => {
  expect(sent("slack")).toEqual({
    url: "https://h.test/a",
    body: { ...slack, attachments: [{ color: "danger", ...attachment }] },
  })
  expect(sent("rocket")!.body).toEqual({ ...slack, attachments: [{ color: "#FF0000", ...attachment }] })
  expect(sent("discord")).toEqual({
    url: "https://h.test/a/slack",
    body: { ...slack, attachments: [{ color: "danger", ...attachment }] },
  })
  expect(sent("discord", {}, "https://h.test/a/slack")!.url).toBe("https://h.test/a/slack")
  expect(sent("msteams")!.body).toEqual({
    "@type": "MessageCard",
    "@context": "http://schema.org/extensions",
    themeColor: "FF0000",
    summary: "web.shop",
    sections: [
      { activityTitle: "rolled <back>", activitySubtitle: "web.shop", facts: [{ name: "Weight", value: "20" }] },
    ],
  })
  expect(JSON.stringify(sent("gchat")!.body)).toContain("<strong>rolled &lt;back&gt;</strong>")
  expect(sent("slack", { severity: "info" })!.body.attachments[0].color).toBe("good")
})

test("an address that is none", () => expect(sent("slack", {}, "nonsense")).toBeUndefined())
