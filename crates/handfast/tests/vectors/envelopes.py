#!/usr/bin/env python3
"""Writes envelopes.jsonl: envelopes made by another language than the library's, from docs/envelope.md alone.

    python3 crates/handfast/tests/vectors/envelopes.py > crates/handfast/tests/vectors/envelopes.jsonl

Needs the package `cryptography`. One line a case: what the server knows (keys, audience, time), who asks for what, the
text that is presented, and what must come of it.
"""

import base64
import hashlib
import hmac
import json
import struct

from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV

MASTER = bytes(range(32))
OTHER = bytes(range(1, 33))
NOW = 1_800_000_000_000_000
MINUTE = 60_000_000
AUDIENCE = "https://mcp.example.com/mcp"
ALICE = {"issuer": "https://id.example", "subject": "alice", "tenant": "acme", "client": "desktop"}
CHECKOUT = {"method": "tools/call", "name": "checkout", "arguments": '{"order":17,"note":"fast"}'}
CANONICAL = '{"note":"fast","order":17}'


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def key_text(master):
    return "hfk1_" + text(master)


def derive(master, label):
    """HKDF-SHA-256 (RFC 5869), salt `handfast`, 32 bytes."""
    prk = hmac.new(b"handfast", master, hashlib.sha256).digest()
    return hmac.new(prk, label + b"\x01", hashlib.sha256).digest()


def part(value):
    return b"\xff\xff\xff\xff" if value is None else struct.pack(">I", len(value)) + value


def utf8(value):
    return None if value is None else value.encode()


def binding(audience, caller, request, canonical):
    parts = [utf8(audience), *(utf8(caller.get(name)) for name in ("issuer", "subject", "tenant", "client"))]
    parts += [utf8(request["method"]), utf8(request["name"]), hashlib.sha256(canonical.encode()).digest()]
    return b"".join(map(part, parts))


def inside(caller=ALICE, request=CHECKOUT, canonical=CANONICAL, audience=AUDIENCE, issued=NOW, expires=NOW + 10 * MINUTE,
           deadline=NOW + 60 * MINUTE, number=1, asked=("confirm",), state=b"step 2", identity=b"i" * 16):
    fixed = identity + struct.pack(">qqqH", issued, expires, deadline, number)
    bound = binding(audience, caller, request, canonical)
    questions = bytes([len(asked)]) + b"".join(part(key.encode()) for key in asked)
    return fixed + part(bound) + questions + state


def sealed(plain, master=MASTER, version=1, suite=1, nonce=b"n" * 12, label=b"handfast request state"):
    header = bytes([version, suite]) + derive(master, b"key id")[:8]
    cipher = AESGCMSIV(derive(master, b"request state"))
    return header + nonce + cipher.encrypt(nonce, plain, label + header)


def envelope(data):
    return "hf1." + text(data)


def show(case, presented, refused=None, keys=None, now=NOW, audience=AUDIENCE, caller=ALICE, request=CHECKOUT, **opened):
    expected = {"refused": refused} if refused else {"state": "step 2", "asked": ["confirm"], "round": 1} | opened
    line = {"case": case, "keys": keys or key_text(MASTER), "now": now, "audience": audience, "caller": caller,
            "request": request, "envelope": presented}
    print(json.dumps(line | expected, ensure_ascii=False))


def without(mapping, *names):
    return {name: value for name, value in mapping.items() if name not in names}


def accepted():
    show("as it was sealed", envelope(sealed(inside())))
    show("the last tick before its end", envelope(sealed(inside())), now=NOW + 10 * MINUTE - 1)
    show("sealed by a clock ahead by as much as is allowed", envelope(sealed(inside(issued=NOW + 30_000_000))))
    keys = f"{key_text(OTHER)} sealing\n{key_text(MASTER)} opening"
    show("under a key that only opens", envelope(sealed(inside())), keys=keys)
    arguments = CHECKOUT | {"arguments": '{ "note" : "fast", "order" : 1.7e1 }'}
    show("arguments written otherwise", envelope(sealed(inside())), request=arguments)
    nobody = without(ALICE, *ALICE)
    show("for nobody in particular", envelope(sealed(inside(caller=nobody))), caller=nobody)
    prompt = {"method": "prompts/get", "name": "résumé", "arguments": '{"\U0001f600":1,"\ufb33":"\\u000f","é":9007199254740993}'}
    canonical = '{"é":9007199254740993,"\U0001f600":1,"\ufb33":"\\u000f"}'
    show("a prompt with names and numbers that are easily got wrong",
         envelope(sealed(inside(request=prompt, canonical=canonical))), request=prompt)
    resource = {"method": "resources/read", "name": "file:///a%20b", "arguments": None}
    plain = inside(request=resource, canonical="{}", number=7, asked=(), state=b"")
    show("a resource, nothing asked, nothing in it, the seventh round", envelope(sealed(plain)), request=resource, state="",
         asked=[], round=7)
    show("two questions", envelope(sealed(inside(asked=("a", "ü")))), asked=["a", "ü"])


def forged():
    good = sealed(inside())
    for what, at in [("version", 0), ("suite", 1)]:
        changed = bytearray(good)
        changed[at] ^= 2
        show(f"another {what}", envelope(changed), "unknown-format")
    for what, at in [("nonce", 10), ("ciphertext", 30), ("tag", len(good) - 1)]:
        changed = bytearray(good)
        changed[at] ^= 1
        show(f"one bit of the {what}", envelope(changed), "forged")
    changed = bytearray(good)
    changed[9] ^= 1
    show("one bit of the key id", envelope(changed), "unknown-key")
    show("cut by one byte", envelope(good[:-1]), "forged")
    show("cut to nothing", envelope(b""), "malformed")
    show("cut to its header", envelope(good[:22]), "malformed")
    show("one byte more", envelope(good + b"\x00"), "forged")
    other = sealed(inside(state=b"step 3"), nonce=b"m" * 12)
    show("the head of one and the tail of another", envelope(good[:60] + other[60:]), "forged")
    show("the nonce of another", envelope(good[:10] + other[10:22] + good[22:]), "forged")
    show("under a key that is not there", envelope(sealed(inside(), master=OTHER)), "unknown-key")
    named = derive(MASTER, b"key id")[:8]
    liar = sealed(inside(), master=OTHER)
    show("under another key than it says", envelope(liar[:2] + named + liar[10:]), "forged")
    keys = f"{key_text(OTHER)}\n{key_text(MASTER)} retired"
    show("under a key that is retired", envelope(good), "retired-key", keys=keys)
    show("for another purpose", envelope(sealed(inside(), label=b"handfast session")), "forged")


def spelled():
    good = envelope(sealed(inside()))
    show("without its mark", good[4:], "malformed")
    show("another mark", "hf2." + good[4:], "malformed")
    show("its mark in capitals", "HF1." + good[4:], "malformed")
    show("padded", good + "=", "malformed")
    show("a space after it", good + " ", "malformed")
    show("a line end within it", good[:40] + "\n" + good[40:], "malformed")
    show("nothing", "", "malformed")
    show("its mark alone", "hf1.", "malformed")
    plus = next(envelope(sealed(inside(), nonce=bytes([n] * 12))) for n in range(256)
                if "-" in envelope(sealed(inside(), nonce=bytes([n] * 12))))
    show("in the other alphabet", plus.replace("-", "+").replace("_", "/"), "malformed")
    # Of the last character some bits say nothing: they must be zero.
    loose = next(envelope(sealed(inside(state=b"x" * n))) for n in range(3) if (len(sealed(inside(state=b"x" * n))) % 3))
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    show("spelled otherwise", loose[:-1] + alphabet[alphabet.index(loose[-1]) + 1], "malformed")


def bound():
    good = envelope(sealed(inside()))
    show("at another server", good, "foreign-audience", audience=AUDIENCE + "/")
    for name, refused in [("subject", "foreign-principal"), ("issuer", "foreign-principal"), ("tenant", "foreign-tenant"),
                          ("client", "foreign-client")]:
        show(f"another {name}", good, refused, caller=ALICE | {name: ALICE[name] + "x"})
    show("nobody", good, "foreign-principal", caller={})
    show("no tenant", good, "foreign-tenant", caller=without(ALICE, "tenant"))
    show("no client", good, "foreign-client", caller=without(ALICE, "client"))
    nobodys = envelope(sealed(inside(caller={})))
    show("what is nobody's, presented by somebody", nobodys, "foreign-principal")
    moved = ALICE | {"issuer": "https://id.examplea", "subject": "lice"}
    show("a character moved from one name to the next", good, "foreign-principal", caller=moved)
    show("another tool", good, "other-request", request=CHECKOUT | {"name": "checkout2"})
    show("another method", good, "other-request", request=CHECKOUT | {"method": "prompts/get"})
    for what, arguments in [("another value", '{"order":18,"note":"fast"}'), ("a value of another type", '{"order":"17","note":"fast"}'),
                            ("one argument more", '{"order":17,"note":"fast","a":null}'), ("one less", '{"order":17}'),
                            ("none", None), ("another spelling of a character", '{"order":17,"note":"fa\u017ft"}')]:
        show(f"arguments: {what}", good, "other-arguments", request=CHECKOUT | {"arguments": arguments})


def timed():
    good = envelope(sealed(inside()))
    show("at its end", good, "expired", now=NOW + 10 * MINUTE)
    show("after its end", good, "expired", now=NOW + 10 * MINUTE + 1)
    show("sealed by a clock that is ahead by a tick too much", envelope(sealed(inside(issued=NOW + 30_000_001))), "not-yet-valid")


accepted()
forged()
spelled()
bound()
timed()
