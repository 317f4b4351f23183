import { isIP, isIPv4, isIPv6 } from "node:net"

/** The formats of strings that a server checks; it ignores others. */
export const formats: Record<string, (text: string) => boolean> = {
  "date-time": text =>
    /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)?$/.test(text) && !Number.isNaN(Date.parse(text)),
  date: text => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  duration: text => /^[+-]?(\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h|d|w))+$/.test(text),
  uuid: text => /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i.test(text),
  ipv4: text => isIPv4(text),
  ipv6: text => isIPv6(text),
  cidr: text => {
    const [address = "", length = "", ...more] = text.split("/")
    const family = isIP(address)
    return more.length === 0 && family !== 0 && /^\d+$/.test(length) && Number(length) <= (family === 4 ? 32 : 128)
  },
  hostname: text =>
    /^([a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?$/.test(text),
  email: text => /^[^\s@]+@[^\s@]+$/.test(text),
  uri: text => URL.canParse(text) || text.startsWith("/"),
  byte: text => /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text),
}
