"""The JSON that commands print, as schemas: no key missing, none that is not described."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def closed(**properties: Schema) -> Schema:
    """An object with exactly these keys."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def nullable(schema: Schema) -> Schema:
    """Or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def listed(schema: Schema) -> Schema:
    """A list of such."""
    return {"type": "array", "items": schema}


TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
SIZE: Schema = {"anyOf": [COUNT, {"type": "string", "minLength": 1}]}

VERSION: Schema = {"const": 1}

VERDICT = closed(
    status={"enum": ["proved", "refuted", "unknown", "vacuous"]},
    claim={"type": "string", "minLength": 1},
    engine={"type": "string", "minLength": 1},
    strictness=listed({"enum": ["nnan", "ninf", "nsz", "reassoc"]}),
    reason=nullable(TEXT),
    counterexample=nullable({"type": "object"}),
    seconds={"type": "number", "minimum": 0},
)

MAP = closed(
    version=VERSION,
    index_map={"type": "string", "pattern": "^lambda"},
    shape=listed(SIZE),
    injective=VERDICT,
    bijective=VERDICT,
    physical_shape=listed(nullable(SIZE)),
    axis_separators=listed(COUNT),
    flattened_shape=listed(nullable(SIZE)),
    inverse=nullable({"type": "string", "pattern": "^lambda"}),
    padding=closed(predicate=nullable(TEXT), cells=nullable(SIZE), fraction=nullable(NUMBER), reason=nullable(TEXT)),
)

STEP = closed(primitive=TEXT, arguments={"type": "object"}, obligations=listed(VERDICT))
FIRST = nullable({"type": "array", "prefixItems": [listed(COUNT), TEXT, TEXT], "minItems": 3, "maxItems": 3})

RUN = closed(
    version=VERSION,
    program=TEXT,
    verdict={"enum": ["proved", "refuted", "unknown", "vacuous"]},
    steps=listed(STEP),
    certificate={"type": "null"},
    lowering=listed(STEP),
    build=nullable(
        closed(
            target=TEXT,
            device=nullable(TEXT),
            command=TEXT,
            source=nullable(TEXT),
            index_bits=WHOLE,
            self_check=TEXT,
            licences=listed(TEXT),
            obligations=listed(VERDICT),
            notes=listed(TEXT),
        )
    ),
    fault=nullable(closed(kind=TEXT, message=TEXT)),
    run=nullable(
        closed(
            after_steps=COUNT,
            equal={"type": "boolean"},
            instances=COUNT,
            cells={"enum": ["all", "slice"]},
            enclosed={"type": "boolean"},
            kernel_seconds=NUMBER,
            interpreter_seconds=NUMBER,
            outputs=listed(
                closed(
                    buffer=TEXT,
                    cells=COUNT,
                    compared=COUNT,
                    differing=COUNT,
                    worst_ulps=COUNT,
                    outside=COUNT,
                    arbitrary=COUNT,
                    first=FIRST,
                )
            ),
            padding=listed(closed(buffer=TEXT, owed=COUNT, untouchable=COUNT, wrong=COUNT, first=FIRST)),
        )
    ),
)

SHAPE = listed({"anyOf": [COUNT, {"type": "string", "minLength": 1}]})
C_NAMES = {"c_name": {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}, "c_type": TEXT}
C_BUFFER = closed(
    name=TEXT,
    kind={"const": "buffer"},
    type=TEXT,
    shape=SHAPE,
    reads={"type": "boolean"},
    writes={"type": "boolean"},
    logical_shape=SHAPE,
    layout=listed(closed(index_map={"type": "string", "pattern": "^lambda"}, padding=nullable(TEXT))),
    **C_NAMES,
)
C_SCALAR = closed(
    name=TEXT, kind={"enum": ["extent", "scalar"]}, type=TEXT, least=nullable(WHOLE), largest=nullable(WHOLE), **C_NAMES
)

BUILD = closed(
    **{key: value for key, value in RUN["properties"].items() if key not in ("fault", "run")},
    target={"const": "c"},
    files={"type": "array", "items": TEXT, "maxItems": 2},
    interface=nullable(
        closed(
            entry=TEXT,
            parameters=listed({"anyOf": [C_BUFFER, C_SCALAR]}),
            results={"type": "object", "additionalProperties": TEXT, "required": ["0", "1", "2", "3"]},
            index_bits={"enum": [32, 64]},
            flags=listed(TEXT),
            openmp={"type": "boolean"},
            assumptions=listed(closed(text=TEXT, duty=TEXT)),
        )
    ),
)

POSITION = {"path": TEXT, "line": COUNT, "column": COUNT, "end_line": COUNT, "end_column": COUNT, "text": TEXT}
STATUS: Schema = {"enum": ["proved", "refuted", "unknown", "vacuous"]}
FINDING = closed(
    code={"type": "string", "pattern": "^LP[0-9]{3}$"},
    message=TEXT,
    status=nullable(STATUS),
    severity={"enum": ["error", "warning", "note"]},
    place=nullable(closed(**POSITION)),
    related=listed(closed(**POSITION, message=TEXT)),
    help=nullable(TEXT),
    obligation=nullable({"type": "string", "pattern": "^[0-9a-f]{64}$"}),
    counterexample=nullable({"type": "object"}),
    drawing=listed(TEXT),
    fate={"enum": ["fails", "allowed", "ignored", "known"]},
)
CHECK = closed(
    program=TEXT,
    verdict=nullable(STATUS),
    steps=listed(STEP),
    certificate=nullable(TEXT),
    kind={"enum": ["gate", "trace", "rewrite"]},
    name=TEXT,
    place=nullable(closed(**POSITION)),
    findings=listed(FINDING),
    notes=listed(TEXT),
    preconditions=listed(TEXT),
    seconds={"type": "number", "minimum": 0},
    cached={"type": "boolean"},
    version={"const": 1},
)
COMPARISON = closed(
    **CHECK["properties"]
    | {
        "kind": {"const": "comparison"},
        "after": TEXT,
        "layouts": listed(
            closed(
                buffer=TEXT,
                stored_as=TEXT,
                index_map={"type": "string", "pattern": "^lambda"},
                pad_value=nullable(TEXT),
                layout_given={"type": "boolean"},
                pad_given={"type": "boolean"},
            )
        ),
        "kept": listed(TEXT),
        "strictness": listed({"enum": ["nnan", "ninf", "nsz", "reassoc"]}),
        "furthest": nullable(
            closed(
                reason=TEXT,
                new_store=nullable(COUNT),
                old_store=nullable(COUNT),
                new_line=nullable(COUNT),
                old_line=nullable(COUNT),
                operand=nullable(TEXT),
                relation=nullable(TEXT),
                matched=COUNT,
            )
        ),
        "witness": nullable(TEXT),
    }
)

TRUST = ["kernel", "two solvers", "one engine", "not confirmed"]
RECHECK = closed(
    version=VERSION,
    verdict={"enum": ["proved", "refuted", "unknown", "vacuous"]},
    disagreements=listed(TEXT),
    files=listed(
        closed(
            path=TEXT,
            kind={"enum": ["certificate", "certificate of version 1", "lemmas", "rewrite", "broken"]},
            verdict=nullable({"enum": ["proved", "refuted", "unknown", "vacuous"]}),
            claims=COUNT,
            questions=COUNT,
            confirmed=COUNT,
            problems=listed(TEXT),
            exceptions=listed(TEXT),
            steps=listed(
                closed(
                    step=TEXT,
                    trust={"enum": TRUST},
                    assumptions=listed(TEXT),
                    accepted=COUNT,
                    judged=COUNT,
                    rejected=listed(closed(kind=TEXT, line=COUNT, claim=TEXT, reason=TEXT)),
                )
            ),
        )
    ),
    engines=listed(closed(engine=TEXT, version=TEXT, asked=COUNT, confirmed=COUNT, unknown=COUNT, contradicted=COUNT)),
    trust=closed(steps=closed(**dict.fromkeys(TRUST, COUNT)), accepted=COUNT, judged=COUNT),
)

DEVICES = listed(
    closed(
        platform=TEXT,
        device=TEXT,
        version={"type": "string", "pattern": "^OpenCL [0-9]+\\.[0-9]+"},
        driver=TEXT,
        default={"type": "boolean"},
        images={"type": "boolean"},
        largest_image=nullable(closed(width=COUNT, height=COUNT, layers=COUNT)),
        read_write_images={"type": "boolean"},
        fp16={"type": "boolean"},
        fp64={"type": "boolean"},
        subnormals={"type": "boolean"},
        correct_division={"type": "boolean"},
        memory=COUNT,
        largest_buffer=COUNT,
    )
)
