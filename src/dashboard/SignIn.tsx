import { useState } from "preact/hooks"
import type { ErrorAnswer } from "#web/wire.ts"

/** Without a session: what is missing, and how to get it. */
export function SignIn({
  answer,
  onToken,
}: {
  answer: ErrorAnswer | undefined
  onToken?: ((token: string) => void) | undefined
}) {
  const [token, setToken] = useState("")
  const isByToken = answer?.error === "NeedsToken" || answer?.error === "TokenRefused" || answer?.error === "NeedsTls"
  return (
    <main class="sign-in">
      <h1>AutoImageManager</h1>
      {answer && (
        <p class="notice warn" role="alert">
          {answer.message}
        </p>
      )}
      {!isByToken && (
        <p>
          The address that <code>aim dashboard</code> prints has a key in it, which is good for one minute and for one
          use. To get another, start <code>aim dashboard</code> again, and open the address that it prints.
        </p>
      )}
      {onToken && (
        <form
          onSubmit={event => {
            event.preventDefault()
            onToken(token.trim())
          }}
        >
          <label>
            <span>A bearer token of the cluster. It is kept in the server's memory only.</span>
            <input
              type="password"
              autocomplete="off"
              value={token}
              onInput={event => setToken(event.currentTarget.value)}
            />
          </label>
          <button type="submit" class="primary" disabled={token.trim() === ""}>
            Sign in
          </button>
        </form>
      )}
    </main>
  )
}
