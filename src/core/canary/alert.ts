import type { AlertProviderSpec } from "#api/v1alpha1/alertprovider/index.ts"

export type Severity = "info" | "warn" | "error"

/** What people are told of a Canary. */
export type Message = {
  readonly severity: Severity
  readonly text: string
  readonly fields?: readonly { readonly name: string; readonly value: string }[]
}

const order: readonly Severity[] = ["info", "warn", "error"]

/** info gets all, warn gets warnings and errors, error gets errors. None is info, as Flagger's documentation says. */
export const isMeantFor = (severity: Severity, asked: Severity | "" | undefined): boolean =>
  order.indexOf(severity) >= order.indexOf(asked || "info")

type Receiver = Pick<AlertProviderSpec, "type" | "channel" | "username">
type Subject = { readonly name: string; readonly namespace: string }

export type AlertRequest = { readonly url: string; readonly body: string }

/** What is sent to a provider, form by form as Flagger sends it. Undefined where the address is none. */
export function alertFor(
  receiver: Receiver,
  address: string,
  subject: Subject,
  message: Message,
): AlertRequest | undefined {
  const url = URL.parse(address)
  if (!url) return undefined
  if (receiver.type === "discord" && !url.pathname.endsWith("/slack"))
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/slack` // Discord reads Slack's form there
  return {
    url: url.href,
    body: JSON.stringify(forms[receiver.type](receiver, `${subject.name}.${subject.namespace}`, message)),
  }
}

type Form = (receiver: Receiver, title: string, message: Message) => unknown

const slackForm =
  (colors: Readonly<Record<Severity, string>>): Form =>
  ({ channel, username }, title, { severity, text, fields = [] }) => ({
    channel,
    username,
    icon_emoji: ":rocket:",
    attachments: [
      {
        color: colors[severity],
        author_name: title,
        text,
        mrkdwn_in: ["text"],
        fields: fields.map(({ name, value }) => ({ title: name, value, short: false })),
      },
    ],
  })

const slackColors = { info: "good", warn: "warning", error: "danger" }

const forms: Readonly<Record<Receiver["type"], Form>> = {
  slack: slackForm(slackColors),
  discord: slackForm(slackColors),
  rocket: slackForm({ info: "#0076D7", warn: "#FFA500", error: "#FF0000" }),
  msteams: (_, title, { severity, text, fields = [] }) => ({
    "@type": "MessageCard",
    "@context": "http://schema.org/extensions",
    themeColor: { info: "0076D7", warn: "FFA500", error: "FF0000" }[severity],
    summary: title,
    sections: [
      { activityTitle: text, activitySubtitle: title, facts: fields.map(({ name, value }) => ({ name, value })) },
    ],
  }),
  gchat: (_, title, { text, fields = [] }) => ({
    cards: [
      {
        header: { title: "AutoImageManager", subtitle: title },
        sections: [
          { widgets: [{ textParagraph: { text: `<strong>${escaped(text)}</strong>` } }] },
          ...fields.map(({ name, value }) => ({
            widgets: [{ textParagraph: { text: `${escaped(name)}<br><strong>${escaped(value)}</strong>` } }],
          })),
        ],
      },
    ],
  }),
}

/** Google Chat reads tags: what others wrote must stay text. */
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
