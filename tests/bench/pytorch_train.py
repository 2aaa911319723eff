#!/usr/bin/env python3
"""The peer of train.sh: SmolLM2-135M in PyTorch (transformers, peft), fp32, eager, one sequence of 2048 tokens a step.

    pytorch_train.py MODEL full|lora STEPS     prints tokens/s (steps after the first), peak memory and the time to the first step's end
"""
import resource, sys, time

start = time.time()
import torch
from transformers import AutoModelForCausalLM

path, method, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
if method == "lora":
    from peft import LoraConfig, get_peft_model
    model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, task_type="CAUSAL_LM",
                           target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]))
model.train()
params = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(params, lr=1e-4)
ids = torch.randint(0, 49152, (1, 2048), generator=torch.Generator().manual_seed(0))
for step in range(steps):
    opt.zero_grad()
    model(input_ids=ids, labels=ids).loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
    if step == 0:
        first = time.time()
rate = 2048 * (steps - 1) / (time.time() - first)
print(f"PyTorch {torch.__version__} {method}: {rate:.1f} tokens/s, {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1048576:.2f} GB, "
      f"first step done after {first - start:.1f} s")
