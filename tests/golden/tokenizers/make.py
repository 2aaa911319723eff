#!/usr/bin/env python3
"""Small tokenizers of each kind and what Hugging Face's library makes of many strings with them.

    pip install tokenizers gguf
    python3 make.py TEXT...     # files to train on: any text in several languages

Writes KIND/tokenizer.json, KIND/tokenizer_config.json, KIND.gguf (as llama.cpp's converter would) and KIND.jsonl: {text, times?, specials, ids or
count and sha256 of the ids as u32le, lossy?: decoding does not give the text back}.
"""
import hashlib
import json
import os
import random
import sys

import gguf
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
CHATML = ("{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
LLAMA3_CHAT = ("{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + "
               "'<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}"
               "{% endif %}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}")


def split(regex):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(regex), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def special(*names):
    return [(n, True) for n in names]


KINDS = {
    "gpt2": dict(pre=pre_tokenizers.ByteLevel(add_prefix_space=False), nfc=False, in_vocab=["<|endoftext|>"], added=special("<|endoftext|>"), gguf="gpt-2",
                 config=dict(bos_token="<|endoftext|>", eos_token="<|endoftext|>", unk_token="<|endoftext|>"), normalized=True),
    "llama3": dict(pre=split(LLAMA3), nfc=False, in_vocab=[], gguf="llama-bpe",
                   added=special("<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eot_id|>x",
                                 *(f"<|reserved_special_token_{i}|>" for i in range(12))),
                   config=dict(bos_token="<|begin_of_text|>", eos_token="<|end_of_text|>", chat_template=LLAMA3_CHAT)),
    "qwen2": dict(pre=split(QWEN2), nfc=True, in_vocab=[], gguf="qwen2",
                  added=special("<|endoftext|>", "<|im_start|>", "<|im_end|>") + [("<think>", False), ("</think>", False), ("<tool_call>", False)],
                  config=dict(bos_token=None, eos_token="<|im_end|>", pad_token="<|endoftext|>", add_bos_token=False, chat_template=CHATML)),
    "smollm2": dict(pre=pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]),
                    nfc=False, in_vocab=["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"], gguf="smollm",
                    added=special("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>"),
                    config=dict(bos_token="<|im_start|>", eos_token="<|im_end|>", pad_token="<|im_end|>", chat_template=CHATML)),
}


def train(kind, k, files):
    t = Tokenizer(models.BPE())
    if k["nfc"]:
        t.normalizer = normalizers.NFC()
    t.pre_tokenizer = k["pre"]
    t.decoder = decoders.ByteLevel()
    # smollm2's vocabulary lacks bytes that its training text did not have; so does this one's.
    alphabet = [] if kind == "smollm2" else pre_tokenizers.ByteLevel.alphabet()
    t.train(files, trainers.BpeTrainer(vocab_size=1100, special_tokens=k["in_vocab"], initial_alphabet=alphabet, show_progress=False,
                                       limit_alphabet=200 if kind == "smollm2" else 256))
    j = json.loads(t.to_str())
    m = j["model"]
    if kind == "llama3":
        # As the conversion from tiktoken does: every way to make a token is a merge, in the order of the tokens; whole pieces are looked up first,
        # and a few tokens are made by no merge at all.
        m["ignore_merges"] = True
        names = sorted(m["vocab"], key=m["vocab"].get)
        m["merges"] = [[n[:i], n[i:]] for n in names for i in range(1, len(n)) if n[:i] in m["vocab"] and n[i:] in m["vocab"]]
        for n in ("Ġunmergeable", "Ã©Ã©Ã©", "zzzzq"):
            m["vocab"][n] = len(m["vocab"])
    n = len(m["vocab"])
    j["added_tokens"] = []
    for name, is_special in k["added"]:
        i = m["vocab"].get(name, n)
        n += i == n
        j["added_tokens"].append(dict(id=i, content=name, single_word=False, lstrip=False, rstrip=False, normalized=k.get("normalized", False),
                                      special=is_special))
    t = Tokenizer.from_str(json.dumps(j))
    byte_level = processors.ByteLevel(trim_offsets=False)
    if kind == "llama3":
        b = "<|begin_of_text|>"
        t.post_processor = processors.Sequence([byte_level, processors.TemplateProcessing(
            single=f"{b} $A", pair=f"{b} $A {b}:1 $B:1", special_tokens=[(b, t.token_to_id(b))])])
    else:
        t.post_processor = byte_level
    return t


def write_gguf(kind, k, t):
    j = json.loads(t.to_str())
    names = {i: n for n, i in t.get_vocab().items()}
    added = {a["id"]: a for a in j["added_tokens"]}
    w = gguf.GGUFWriter(kind + ".gguf", "llama")
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre(k["gguf"])
    rows = max(names) + 1 + 7      # embedding tables are often longer than the vocabulary
    w.add_token_list([names.get(i, f"[PAD{i}]") for i in range(rows)])
    w.add_token_types([gguf.TokenType.UNUSED if i not in names else gguf.TokenType.NORMAL if i not in added else
                       gguf.TokenType.CONTROL if added[i]["special"] else gguf.TokenType.USER_DEFINED for i in range(rows)])
    w.add_token_merges([" ".join(m) for m in j["model"]["merges"]])
    for name, add in (("bos_token", w.add_bos_token_id), ("eos_token", w.add_eos_token_id), ("pad_token", w.add_pad_token_id)):
        if k["config"].get(name):
            add(t.token_to_id(k["config"][name]))
    if kind == "smollm2":
        w.add_add_bos_token(False)
    if "chat_template" in k["config"]:
        w.add_chat_template(k["config"]["chat_template"])
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.close()


FIXED = ["", " ", "  ", "Hello world", " Hello world", "  x", "<s>user", "<|im_start|>user", "<|im_start|>user\nHi<|im_end|>\n", "A\r\nB\t", "12345", "12345 1234567",
         "don't", "DON'T they'Re we'LL I'd you'vE 'tis ' 'x", "x'\u017fabc", "x\u2019s", "\u00e9", "e\u0301", "caf\u00e9 cafe\u0301", "\U0001F999", "\U0001F468\u200d\U0001F469\u200d\U0001F467", "\uc548\ub155\ud558\uc138\uc694",
         "\u1112\u1161\u11ab\u1100\u1173\u11af", "\u1112\u1161 \u11ab", "a\0b", "\0", "a\x85b", "a\u180eb", "\u180e", "\u200b x", "a\u3000b", "\u3000\u3000a", "a \u00a0 b", "\ufeffhi", "a\nb", "a\n\n\nb", "a \n \n b", "\n", "\r\n\r\n",
         "x\u2028y", "\t\tx", "\t \tif x:\n\t\treturn 1", "   ", "x   ", "!!!???\n\n", "foo_bar(baz[0]);\n", "a<|endoftext|>b", "<|endoftext|>", "<|eot_id|>x", "x<|eot_id|>y", "<|begin_of_text|>hello", "<|eot_id|", "<think>\nhm</think>\n\nyes",
         "<|reserved_special_token_1|><|reserved_special_token_11|>", " unmergeable", "unmergeable", "\u00e9\u00e9\u00e9", "zzzzq", "\u00bd \u2167 \u0664\u0665 \U0001d7d8", "\U00011de1\U00016ff4", "\u1e9b\u0323", "a\u1df6\u0334\u0345", "a\u08d3\u0334", "\u212b \u2126 \u0958", "q\u0307\u0323", "\u0344",
         "1,234.56", "$5 + 7% = #1", "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u6211\u4eec\u53bb\u516c\u56ed\u5427\u3002", "\u0417\u0434\u0440\u0430\u0432\u0441\u0442\u0432\u0443\u0439, \u043c\u0438\u0440!", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\U00020000\U0002f800", "\U0010ffff", "\ufffd\ufffe",
         "def f(x):\n    return {k: v for k, v in x.items() if v}\n", "#include <stdio.h>\nint main(void)\n{\n\treturn 0;\n}\n", "SELECT * FROM t WHERE a='b''c';", "{\"a\": [1, 2.5e-3, null]}\n", "https://example.org/a?b=c&d=%20"]
REPEATED = [("a", 65536), (" ", 30000), ("^", 20000), ("1", 10000), ("\n", 5000), ("ab", 9999), ("\u00e9", 5000), ("e\u0301", 3000), ("\u4e2d", 5000)]


def random_strings(rnd, added, n):
    pools = [range(128), [32, 9, 10, 13, 0x85, 0xA0, 0x3000, 0x2028, 65, 97, 39, 49, 33], [*range(0x300, 0x370), 0x61, 0x65, 0x6F], range(0x1100, 0x1200), range(0x600, 0x700),
             range(0x900, 0xA00), [*range(0x4E00, 0x4F00), 0x3002, 32], [ord(c) for c in "'sStTrReEvVmMlLdD\u017f x1\n "], [*range(0x1F300, 0x1FA70), 0x200D, 0xFE0F], range(0xC0, 0x250)]
    for _ in range(n):
        pool, s = rnd.choice(pools), ""
        for _ in range(rnd.choice([1, 2, 3, 5, 8, 20, 40])):
            q = rnd.random()
            c = rnd.randrange(0x110000) if q < 0.1 else rnd.choice(pool)
            s += rnd.choice(added) if 0.1 <= q < 0.16 else "" if 0xD800 <= c < 0xE000 else chr(c)
        yield s


def golden(t, text, times, specials):
    t.encode_special_tokens = not specials
    whole = text * times
    ids = t.encode(whole, add_special_tokens=False).ids
    row = dict(text=text, specials=specials)
    if times > 1:
        data = b"".join(i.to_bytes(4, "little") for i in ids)
        row.update(times=times, count=len(ids), sha256=hashlib.sha256(data).hexdigest())
    else:
        row["ids"] = ids
    if t.decode(ids, skip_special_tokens=False) != whole:
        row["lossy"] = True
    return row


def main():
    for kind, k in KINDS.items():
        t = train(kind, k, sys.argv[1:])
        os.makedirs(kind, exist_ok=True)
        t.save(f"{kind}/tokenizer.json", pretty=False)
        with open(f"{kind}/tokenizer_config.json", "w") as f:
            json.dump(k["config"], f, indent=1)
        write_gguf(kind, k, t)
        rnd = random.Random(kind)
        added = [n for n, _ in k["added"]] + ["<|im_start|>", "<|eot_id|>"]
        with open(f"{kind}.jsonl", "w") as f:
            for s in FIXED + list(random_strings(rnd, added, 400)):
                for specials in (True, False):
                    f.write(json.dumps(golden(t, s, 1, specials), ensure_ascii=False) + "\n")
            for s, times in REPEATED:
                f.write(json.dumps(golden(t, s, times, True), ensure_ascii=False) + "\n")


main()
