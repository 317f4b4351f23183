import { describe, expect, test } from "vitest"
import { forbiddenAddress } from "./address.ts"

describe("public addresses are fine", () => {
  test.each([
    "1.1.1.1",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.0",
    "169.253.255.255",
    "172.15.255.255",
    "172.32.0.0",
    "192.167.255.255",
    "223.255.255.255",
    "2606:4700::6810:85e5",
    "2a00::1",
    "64:ff9b::101:101", // 1.1.1.1, from a network without IPv4
    "64:ff9b::1.1.1.1",
  ])("%s", address => expect(forbiddenAddress(address)).toBeUndefined())
})

describe("others are not", () => {
  test.each([
    ["0.0.0.0", "an unspecified"],
    ["0.1.2.3", "an unspecified"],
    ["10.0.0.1", "a private"],
    ["10.255.255.255", "a private"],
    ["100.64.0.1", "a private"],
    ["100.100.100.200", "a private"], // Alibaba's metadata
    ["100.127.255.255", "a private"],
    ["127.0.0.1", "a loopback"],
    ["127.255.255.254", "a loopback"],
    ["168.63.129.16", "a link-local"],
    ["169.254.169.254", "a link-local"],
    ["172.16.0.1", "a private"],
    ["172.31.255.255", "a private"],
    ["192.0.2.1", "a reserved"],
    ["192.168.1.1", "a private"],
    ["198.19.0.1", "a reserved"],
    ["224.0.0.1", "a multicast"],
    ["239.255.255.255", "a multicast"],
    ["255.255.255.255", "a reserved"],
    ["::", "a local or reserved"],
    ["::1", "a local or reserved"],
    ["::127.0.0.1", "a local or reserved"],
    ["::ffff:127.0.0.1", "a local or reserved"],
    ["::ffff:1.1.1.1", "a local or reserved"],
    ["::ffff:0:a00:1", "a local or reserved"],
    ["fe80::1", "a local or reserved"],
    ["fe80::1%eth0", "no"],
    ["2606:4700::1%eth0", "no"],
    ["fc00::1", "a local or reserved"],
    ["fd00:ec2::254", "a local or reserved"],
    ["ff02::1", "a local or reserved"],
    ["2001::1", "a local or reserved"],
    ["2001:db8::1", "a local or reserved"],
    ["2002:7f00:1::", "a local or reserved"], // 6to4 around 127.0.0.1
    ["64:ff9b::7f00:1", "a loopback"],
    ["64:ff9b::a9fe:a9fe", "a link-local"],
    ["64:ff9b::", "an unspecified"],
    ["64:ff9b:1::a00:1", "a local or reserved"],
    ["", "no"],
    ["example.com", "no"],
    ["127.1", "no"],
    ["0x7f.0.0.1", "no"],
  ])("%s is %s address", (address, what) => expect(forbiddenAddress(address)).toBe(what))
})
