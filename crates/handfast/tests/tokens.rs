//! Tokens: whose they are when they are good, and exactly why they are not when they are nearly good. The issuer is real
//! and speaks HTTP.

use std::{sync::Arc, time::Duration};

use aws_lc_rs::hmac;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use handfast::{
    Audience, SecretText,
    clock::{Clock, ManualClock, SystemClock, Timestamp},
    token::{Algorithm, IntrospectionVerifier, Jwks, JwtVerifier, TokenDenial, TokenRules, TokenVerifier},
};
use handfast_twins::issuer::{Issuer, Wish};
use serde_json::{Map, Value, json};

const OURS: &str = "https://mcp.example.com/mcp";

async fn issuer() -> Issuer {
    Issuer::start(0).await.expect("an issuer")
}

fn verifier(issuer: &Issuer) -> JwtVerifier {
    verifier_by(issuer, rules(issuer.url()))
}

fn verifier_by(issuer: &Issuer, rules: TokenRules) -> JwtVerifier {
    let keys = Jwks::at(&issuer.jwks_url()).expect("loopback");
    JwtVerifier::new(rules, &[Algorithm::Es256, Algorithm::Rs256], keys)
}

fn rules(issuer: &str) -> TokenRules {
    TokenRules::new(issuer.parse().expect("an issuer"), OURS.parse().expect("an audience"))
}

fn alice() -> Wish {
    Wish::of("alice", OURS)
}

async fn keys_of(issuer: &Issuer) -> Value {
    let text = reqwest::get(issuer.jwks_url()).await.expect("keys").text().await.expect("text");
    text.parse().expect("JSON")
}

fn claims(of: Value) -> Map<String, Value> {
    of.as_object().cloned().expect("an object")
}

#[tokio::test]
async fn a_good_token_says_whose_it_is() {
    let issuer = issuer().await;
    let token = issuer.token(&Wish {
        scope: Some("mcp:tools mcp:read mcp:read".into()),
        claims: claims(json!({"org": "acme", "nbf": 1, "unknown": {"a": [1]}})),
        ..alice()
    });

    let good = verifier_by(&issuer, rules(issuer.url()).tenant_claim("org")).verify(&token).await.expect("good");

    let caller = &good.caller;
    let principal = caller.principal().expect("a principal");
    assert_eq!((principal.issuer().as_str(), principal.subject().expose()), (issuer.url(), "alice"));
    assert_eq!(caller.client().expect("a client").as_str(), "demo-client");
    assert_eq!(caller.tenant().expect("a tenant").as_str(), "acme");
    assert_eq!(caller.audience().expect("an audience").as_str(), OURS);
    assert_eq!(caller.scopes().expect("scopes").text(), "mcp:read mcp:tools");
    assert!(caller.token_id().is_some());
    let left = good.expires.duration_since(SystemClock.now()).as_secs();
    assert!((3500..=3600).contains(&left), "{left}");
}

#[tokio::test]
async fn the_audience_is_this_server_in_every_spelling_of_it_and_no_other() {
    let issuer = issuer().await;
    let verifier = verifier(&issuer);
    let verified = |audience: Value| {
        let token = issuer.token(&Wish { audience, ..alice() });
        let verifier = &verifier;
        async move { verifier.verify(&token).await.map(|_| ()) }
    };
    for good in [
        json!(OURS),
        json!("HTTPS://MCP.example.com/mcp"),
        json!("https://mcp.example.com:443/mcp"),
        json!([OURS]),
        json!(["https://other.example", OURS]),
        json!([7, OURS]),
    ] {
        assert_eq!(verified(good.clone()).await, Ok(()), "{good}");
    }
    for bad in [
        Value::Null,
        json!(""),
        json!([]),
        json!({"aud": OURS}),
        json!([[OURS]]),
        json!(7),
        json!(true),
        json!(["https://other.example"]),
        json!("https://mcp.example.com/mcp2"),
        json!("https://mcp.example.com/mc"),
        json!("https://mcp.example.com/mcp/"),
        json!("https://mcp.example.com/mcp/tools"),
        json!("https://mcp.example.com/MCP"),
        json!("https://mcp.example.com:8443/mcp"),
        json!("https://mcp.example.com"),
        json!("http://mcp.example.com/mcp"),
        json!("https://mcp.example.com.evil.example/mcp"),
        json!("demo-client"),
        json!("*"),
        json!(format!("{OURS} https://other.example")),
    ] {
        assert_eq!(verified(bad.clone()).await, Err(TokenDenial::Audience), "{bad}");
    }
}

#[tokio::test]
async fn a_further_audience_only_where_the_server_says_so() {
    let issuer = issuer().await;
    let further = |text: &str| text.parse::<Audience>().expect("an audience");
    let token = issuer.token(&Wish::of("alice", "api://shop"));

    assert_eq!(verifier(&issuer).verify(&token).await, Err(TokenDenial::Audience));
    assert_eq!(
        verifier_by(&issuer, rules(issuer.url()).also_for(further("api://sho"))).verify(&token).await,
        Err(TokenDenial::Audience)
    );
    let caller = verifier_by(&issuer, rules(issuer.url()).also_for(further("api://shop")))
        .verify(&token)
        .await
        .expect("good")
        .caller;
    assert_eq!(caller.audience().expect("an audience").as_str(), OURS, "it is this server all the same");
}

#[tokio::test]
async fn every_claim_that_is_not_as_it_should_be() {
    use TokenDenial::{Claims, Expired, Issuer as OfAnother, NotYetValid};
    let issuer = issuer().await;
    let now = SystemClock.now().as_second();
    let slash = format!("{}/", issuer.url());
    for (changed, denial) in [
        (json!({"iss": "https://id.example"}), OfAnother),
        (json!({"iss": slash}), OfAnother),
        (json!({"iss": null}), OfAnother),
        (json!({"iss": [issuer.url()]}), OfAnother),
        (json!({"exp": null}), Expired),
        (json!({"exp": now - 3600}), Expired),
        (json!({"exp": -1}), Expired),
        (json!({"exp": (now + 3600).to_string()}), Expired),
        (json!({"nbf": now + 3600}), NotYetValid),
        (json!({"nbf": "tomorrow"}), Claims),
        (json!({"sub": null}), Claims),
        (json!({"sub": ""}), Claims),
        (json!({"sub": 7}), Claims),
        (json!({"sub": "a\u{0}b"}), Claims),
        (json!({"sub": "s".repeat(513)}), Claims),
        (json!({"client_id": 7}), Claims),
        (json!({"client_id": ""}), Claims),
        (json!({"scope": 7}), Claims),
        (json!({"scope": ["a", 7]}), Claims),
        (json!({"scope": "a\"b"}), Claims),
        (json!({"jti": {}}), Claims),
        (json!({"cnf": {"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}}), TokenDenial::Constrained),
        (json!({"cnf": {"x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2"}}), TokenDenial::Constrained),
    ] {
        let token = issuer.token(&Wish { claims: claims(changed.clone()), ..alice() });
        assert_eq!(verifier(&issuer).verify(&token).await.map(|_| ()), Err(denial), "{changed}");
    }
    let token = issuer.token(&alice());
    assert_eq!(
        verifier_by(&issuer, rules(issuer.url()).tenant_claim("org")).verify(&token).await.map(|_| ()),
        Err(Claims)
    );
}

#[tokio::test]
async fn time_is_judged_to_the_tick() {
    let issuer = issuer().await;
    let at = SystemClock.now().as_second();
    let token = issuer.token(&Wish { claims: claims(json!({"nbf": at, "exp": at + 60})), ..alice() });
    let second = |second: i64| Timestamp::from_second(second).expect("a time");
    let tick = Duration::from_micros(1);
    for (now, verdict) in [
        (second(at - 30) - tick, Err(TokenDenial::NotYetValid)),
        (second(at - 30), Ok(())),
        (second(at + 90) - tick, Ok(())),
        (second(at + 90), Err(TokenDenial::Expired)),
    ] {
        let verifier = verifier_by(&issuer, rules(issuer.url()).clock(Arc::new(ManualClock::at(now))));
        assert_eq!(verifier.verify(&token).await.map(|_| ()), verdict, "{now}");
    }
    // A clock that goes back does not bring it to life again.
    let clock = Arc::new(ManualClock::at(second(at + 90)));
    let verifier = verifier_by(&issuer, rules(issuer.url()).clock(clock.clone()).leeway(Duration::from_secs(3600)));
    assert!(verifier.verify(&token).await.is_ok(), "leeway is 5 minutes at most, and those are not over");
    clock.set(second(at + 60 + 300));
    assert_eq!(verifier.verify(&token).await.map(|_| ()), Err(TokenDenial::Expired));
    clock.set(second(at));
    assert_eq!(verifier.verify(&token).await.map(|_| ()), Err(TokenDenial::Expired));
}

/// The attacks on verifiers of JSON Web Tokens that have names: RFC 8725, section 2.
#[tokio::test]
async fn forgeries() {
    use TokenDenial::{Algorithm as Other, Critical, Malformed, Signature, TooLong, Type, UnknownKey};
    let issuer = issuer().await;
    let verifier = verifier(&issuer);
    let good = issuer.token(&alice());
    assert!(verifier.verify(&good).await.is_ok());
    let [header, body, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("three parts") };
    let jwks = keys_of(&issuer).await;
    let (key, part) = (&jwks["keys"][0], |json: Value| URL_SAFE_NO_PAD.encode(json.to_string()));
    let kid = &key["kid"];

    // The algorithm, as the token would like it.
    for alg in ["none", "None", "nOnE", "NONE", "", "ES384", "EdDSA", "PS256", "HS256", "es256"] {
        for tail in ["", signature] {
            let token = format!("{}.{body}.{tail}", part(json!({"alg": alg, "kid": kid})));
            assert_eq!(verifier.verify(&token).await, Err(Other), "{alg}");
        }
    }
    for header in [json!({"kid": kid}), json!({"alg": null}), json!({"alg": ["ES256"]}), json!({"alg": 7})] {
        assert_eq!(verifier.verify(&format!("{}.{body}.{signature}", part(header))).await, Err(Other));
    }
    // A public key taken for a shared secret.
    for secret in [key.to_string(), key["x"].as_str().expect("x").to_owned(), String::new()] {
        let message = format!("{}.{body}", part(json!({"alg": "HS256", "kid": kid})));
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), message.as_bytes());
        let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag.as_ref()));
        assert_eq!(verifier.verify(&token).await, Err(Other));
    }
    // An algorithm that is allowed, for a key of another kind.
    let token = format!("{}.{body}.{signature}", part(json!({"alg": "RS256", "kid": kid})));
    assert_eq!(verifier.verify(&token).await, Err(UnknownKey));

    // Keys that the token brings, or leads to.
    let stranger = Issuer::start(0).await.expect("another issuer");
    let theirs = keys_of(&stranger).await;
    let ours = claims(json!({"iss": issuer.url()}));
    let forged = |header: Value| {
        let header = claims(header).into_iter().collect();
        stranger.token(&Wish { claims: ours.clone(), header, ..alice() })
    };
    for (header, denial) in [
        (json!({"kid": kid}), Signature),
        (json!({"kid": kid, "jwk": theirs["keys"][0]}), Signature),
        (json!({"kid": kid, "jku": stranger.jwks_url()}), Signature),
        (json!({"kid": kid, "x5u": stranger.jwks_url()}), Signature),
        (json!({}), UnknownKey),
        (json!({"kid": ""}), UnknownKey),
        (json!({"kid": "../../../dev/null"}), UnknownKey),
        (json!({"kid": "/proc/sys/kernel/randomize_va_space"}), UnknownKey),
        (json!({"kid": "' UNION SELECT 'key'; --"}), UnknownKey),
        (json!({"kid": stranger.jwks_url()}), UnknownKey),
        (json!({"kid": format!("{}\u{0}", kid.as_str().expect("text"))}), UnknownKey),
        (json!({"kid": null}), Malformed),
        (json!({"kid": 7}), Malformed),
        (json!({"kid": [kid]}), Malformed),
    ] {
        assert_eq!(verifier.verify(&forged(header.clone())).await, Err(denial), "{header}");
    }
    assert_eq!(verifier.verify(&issuer.token(&Wish { foreign_key: true, ..alice() })).await, Err(Signature));

    // What the header says that it is, and what it wants.
    let headed = |header: Value| issuer.token(&Wish { header: claims(header).into_iter().collect(), ..alice() });
    for (header, denial) in [
        (json!({"typ": "JWT"}), Type),
        (json!({"typ": "dpop+jwt"}), Type),
        (json!({"typ": "logout+jwt"}), Type),
        (json!({"typ": "at+jwt "}), Type),
        (json!({"typ": null}), Type),
        (json!({"crit": ["exp"]}), Critical),
        (json!({"crit": []}), Critical),
        (json!({"crit": ["b64"], "b64": false}), Critical),
    ] {
        assert_eq!(verifier.verify(&headed(header.clone())).await, Err(denial), "{header}");
    }
    for header in [json!({"typ": "AT+JWT"}), json!({"typ": "application/at+jwt"}), json!({"x5t": "abc", "cty": "JWT"})]
    {
        assert!(verifier.verify(&headed(header.clone())).await.is_ok(), "{header}");
    }

    // Spellings.
    for token in [
        String::new(),
        ".".into(),
        "..".into(),
        "....".into(),
        format!("{header}.{body}"),
        format!("{header}.{body}.{signature}.{signature}"),
        format!("{header}.{body}.{signature}="),
        format!("{header}={}.{body}.{signature}", ""),
        format!(" {good}"),
        format!("{good}\n"),
        format!("{}.{body}.{signature}", URL_SAFE_NO_PAD.encode("[]")),
        format!("{}.{body}.{signature}", URL_SAFE_NO_PAD.encode(r#"{"alg":"none","alg":"ES256"}"#)),
        format!("{}.{body}.{signature}", URL_SAFE_NO_PAD.encode([0xff, 0xfe])),
        "{\"payload\":\"\",\"signature\":\"\"}".to_owned(),
    ] {
        assert_eq!(verifier.verify(&token).await, Err(Malformed), "{token}");
    }
    assert_eq!(verifier.verify(&format!("{header}.{body}.")).await, Err(Signature));
    let zeros = URL_SAFE_NO_PAD.encode([0; 64]);
    assert_eq!(verifier.verify(&format!("{header}.{body}.{zeros}")).await, Err(Signature));
    assert_eq!(verifier.verify(&"a".repeat(16 * 1024 + 1)).await, Err(TooLong));
    // Every character of it counts.
    for at in 0..good.len() {
        let mut bytes = good.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(bytes).expect("ASCII");
        assert!(verifier.verify(&changed).await.is_err(), "{at}");
    }
}

/// A claim that stands twice under a signature that is the issuer's own: two readers would not read the same.
#[tokio::test]
async fn a_claim_stands_once() {
    let (issuer, twice) = raw_issuer(
        r#"{"iss":"https://id.example","sub":"bob","sub":"alice","aud":"https://mcp.example.com/mcp","exp":99999999999}"#,
    );
    assert_eq!(issuer.verify(&twice).await, Err(TokenDenial::Malformed));
    let (issuer, once) = raw_issuer(
        r#"{"iss":"https://id.example","sub":"alice","aud":"https://mcp.example.com/mcp","exp":99999999999}"#,
    );
    assert!(issuer.verify(&once).await.is_ok());
}

/// Signs this text with Ed25519, and verifies by a key that is not fetched.
fn raw_issuer(claims: &str) -> (JwtVerifier, String) {
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
    let pair = Ed25519KeyPair::generate().expect("a key");
    let public = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
    let set = json!({"keys": [
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "unheard-of"},
        {"kty": "OKP", "crv": "Ed25519", "x": public, "use": "enc", "kid": "for secrets"},
        {"kty": "OKP", "crv": "Ed25519", "x": public},
    ]});
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(r#"{"alg":"EdDSA"}"#), URL_SAFE_NO_PAD.encode(claims));
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(pair.sign(message.as_bytes()).as_ref()));
    (
        JwtVerifier::new(
            rules("https://id.example"),
            &[Algorithm::EdDsa],
            Jwks::fixed(&set.to_string()).expect("a key"),
        ),
        token,
    )
}

/// Of several keys one is chosen by its id, or because only one could be it; and a key is for what it says that it is for.
#[tokio::test]
async fn which_key_it_is_is_never_guessed() {
    use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
    let pairs: Vec<Ed25519KeyPair> = (0..2).map(|_| Ed25519KeyPair::generate().expect("a key")).collect();
    let key = |at: usize, more: Value| {
        let mut key =
            json!({"kty": "OKP", "crv": "Ed25519", "x": URL_SAFE_NO_PAD.encode(pairs[at].public_key().as_ref())});
        key.as_object_mut().expect("an object").extend(claims(more));
        key
    };
    let signed = |at: usize, header: Value| {
        let body = json!({"iss": "https://id.example", "sub": "alice", "aud": OURS, "exp": 99_999_999_999_u64});
        let part = |json: &Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let message = format!("{}.{}", part(&header), part(&body));
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(pairs[at].sign(message.as_bytes()).as_ref()))
    };
    let verified = async |keys: Value, token: String| {
        let keys = Jwks::fixed(&json!({"keys": keys}).to_string()).expect("keys");
        JwtVerifier::new(rules("https://id.example"), &[Algorithm::EdDsa], keys).verify(&token).await.map(|_| ())
    };
    let (plain, named) = (json!({"alg": "EdDSA"}), |id: &str| json!({"alg": "EdDSA", "kid": id}));
    let unknown = Err(TokenDenial::UnknownKey);

    let both = json!([key(0, json!({"kid": "one"})), key(1, json!({"kid": "two"}))]);
    assert_eq!(verified(both.clone(), signed(1, named("two"))).await, Ok(()));
    assert_eq!(verified(both.clone(), signed(1, named("one"))).await, Err(TokenDenial::Signature));
    assert_eq!(verified(both, signed(0, plain.clone())).await, unknown, "it could be either");
    let same = json!([key(0, json!({"kid": "one"})), key(1, json!({"kid": "one"}))]);
    assert_eq!(verified(same, signed(0, named("one"))).await, unknown, "it could be either");
    assert_eq!(verified(json!([key(0, json!({}))]), signed(0, plain.clone())).await, Ok(()));

    // Beside one that is for something, so that there is a key at all.
    let beside = |more: Value| json!([key(0, more), key(1, json!({"kid": "other"}))]);
    let one = |more: Value| claims(json!({"kid": "one"})).into_iter().chain(claims(more)).collect::<Map<_, _>>();
    for (more, verdict) in [
        (json!({"alg": "EdDSA", "use": "sig", "key_ops": ["verify"]}), Ok(())),
        (json!({"alg": "ES256"}), unknown),
        (json!({"use": "enc"}), unknown),
        (json!({"key_ops": ["sign"]}), unknown),
    ] {
        let token = signed(0, named("one"));
        assert_eq!(verified(beside(one(more.clone()).into()), token).await, verdict, "{more}");
    }
    let many = |before: usize| {
        let others = (0..before).map(|n| key(1, json!({"kid": format!("k{n}")})));
        Value::from_iter(others.chain([key(0, json!({"kid": "one"}))]))
    };
    assert_eq!(verified(many(99), signed(0, named("one"))).await, Ok(()));
    assert_eq!(verified(many(100), signed(0, named("one"))).await, unknown, "so many are read, and no more");
    for none in ["", "garbage", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#] {
        assert!(Jwks::fixed(none).is_err(), "{none}");
    }
}

#[tokio::test]
async fn of_two_names_for_one_thing_the_standard_one_counts() {
    let issuer = issuer().await;
    let both = claims(json!({"azp": "other-client", "scope": "a", "scp": ["b"]}));
    let caller = verifier(&issuer).verify(&issuer.token(&Wish { claims: both, ..alice() })).await.expect("good").caller;
    assert_eq!(caller.client().expect("one").as_str(), "demo-client");
    assert_eq!(caller.scopes().expect("one").text(), "a");
    let only = claims(json!({"client_id": null, "azp": "other-client", "scp": ["b", "c"]}));
    let caller = verifier(&issuer).verify(&issuer.token(&Wish { claims: only, ..alice() })).await.expect("good").caller;
    assert_eq!(caller.client().expect("one").as_str(), "other-client");
    assert_eq!(caller.scopes().expect("two").text(), "b c");
}

#[tokio::test]
async fn keys_are_exchanged_while_tokens_are_verified() {
    let issuer = issuer().await;
    let clock = Arc::new(ManualClock::at(SystemClock.now()));
    let verifier = verifier_by(&issuer, rules(issuer.url()).clock(clock.clone()));
    let old = issuer.token(&alice());
    assert!(verifier.verify(&old).await.is_ok());

    issuer.rotate().expect("a new key");
    let new = issuer.token(&alice());
    assert_eq!(verifier.verify(&new).await, Err(TokenDenial::UnknownKey), "the issuer was asked a moment ago");
    clock.advance(Duration::from_secs(10));
    assert!(verifier.verify(&new).await.is_ok(), "and is asked again for a key that is not known");
    assert!(verifier.verify(&old).await.is_ok(), "the former key is published still");

    issuer.rotate().expect("a new key");
    assert!(verifier.verify(&old).await.is_ok(), "keys are used for five minutes");
    clock.advance(Duration::from_secs(5 * 60));
    assert_eq!(verifier.verify(&old).await, Err(TokenDenial::UnknownKey));
    assert!(verifier.verify(&new).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_is_asked() {
    let issuer = issuer().await;
    let asking = |secret: &str| {
        let (url, secret) = (format!("{}/introspect", issuer.url()), SecretText::new(secret));
        IntrospectionVerifier::new(rules(issuer.url()), &url, "shop: a+b", secret).expect("loopback")
    };
    let verifier = asking(issuer.client_secret());
    let good = issuer.token(&alice());
    let caller = verifier.verify(&good).await.expect("active").caller;
    assert_eq!(caller.principal().expect("one").subject().expose(), "alice");

    let (foreign, late) = (Wish::of("alice", "https://other.example"), Wish { lifetime: -1, ..alice() });
    assert_eq!(verifier.verify(&issuer.token(&foreign)).await, Err(TokenDenial::Audience));
    assert_eq!(verifier.verify(&issuer.token(&late)).await, Err(TokenDenial::Inactive));
    for (kind, verdict) in
        [("Bearer", Ok(())), ("refresh_token", Err(TokenDenial::Type)), ("DPoP", Err(TokenDenial::Type))]
    {
        let token = issuer.token(&Wish { claims: claims(json!({"token_type": kind})), ..alice() });
        assert_eq!(verifier.verify(&token).await.map(|_| ()), verdict, "{kind}");
    }
    assert_eq!(verifier.verify("no-such-token").await, Err(TokenDenial::Inactive));
    for none in ["", "no such token", "a\"b", "\u{e9}"] {
        assert_eq!(verifier.verify(none).await, Err(TokenDenial::Malformed), "{none}");
    }
    assert_eq!(verifier.verify(&"a".repeat(16 * 1024 + 1)).await, Err(TokenDenial::TooLong));
    assert_eq!(asking("wrong").verify(&good).await, Err(TokenDenial::Unavailable));

    issuer.revoke(&good);
    assert_eq!(verifier.verify(&good).await, Err(TokenDenial::Inactive), "at once");
}

#[test]
fn only_over_tls_or_on_this_machine() {
    for good in ["https://id.example/jwks", "http://127.0.0.1:1/jwks", "http://localhost/jwks", "http://[::1]/jwks"] {
        assert!(Jwks::at(good).is_ok(), "{good}");
    }
    for bad in
        ["http://id.example/jwks", "http://127.0.0.1.evil.example/", "file:///etc/keys", "ftp://127.0.0.1/", "jwks"]
    {
        let told = Jwks::at(bad).expect_err("refused").to_string();
        assert!(told.contains("must be https") || told.contains("is not a URL"), "{bad}: {told}");
    }
    let told = Jwks::at("https://me:s3cret@id example/jwks").expect_err("refused").to_string();
    assert!(!told.contains("s3cret") && told.contains("`id example/jwks` is not a URL"), "{told}");
}
