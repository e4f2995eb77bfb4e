// Fine-tuning: adapts a base, or its last blocks, to other classes or to values.
//
//   const artel::transfer::Finetuning plan =
//       artel::transfer::plan_finetuning(base, "flowers", {.train = "last 2"});
//   artel::Run run(plan.config, {.out = "runs/flowers"});
//   run.train();
//
// A plan is an ordinary configuration. `artel finetune --print` writes it as TOML, and `artel
// train` gives the same bits from it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/run/run.h"
#include "artel/transfer/base_network.h"
#include "artel/transfer/blocks.h"

namespace artel::transfer {

// Maximum length of a fine-tuning. Fewer samples need more epochs.
struct FinetuneLength {
  int64_t batch_size, epochs, patience;
};
FinetuneLength finetune_length(int64_t samples, bool head_only);

struct FinetuneOptions {
  // The blocks to train (blocks.h), or "auto" to choose by the number of samples.
  std::string train = "auto";
  // For transformers: trains low-rank adapters of this rank (nn/adapters.h) and the head instead of
  // blocks. 0 turns it off.
  int64_t lora = 0;
  bool new_head = false;  // replaces the head even if the classes are the same
  int64_t outputs = 0;    // of a new head; 0: one for each class, or each value of a target
  int64_t side = 0;       // image size; 0 for that of the base
  double rate = 0;        // learning rate of the head; 0 chooses by the trained blocks
  // Learning rate of the last block before the head relative to the head's, and of each further
  // block relative to the one above it.
  double below = 0.1, decay = 0.8;
  std::vector<std::string> overrides = {};  // configuration overrides, applied last
};

struct Finetuning {
  RunConfig config;
  std::vector<Block> blocks;  // of the network with the new head
  std::vector<bool> trained;
  bool keeps_head = false;
  RunData data;                    // opened once
  std::vector<std::string> notes;  // decisions with reasons, for the user
};

// Throws for unsuitable data: only one class, a class with a single sample, or samples that do not
// fit the base.
Finetuning plan_finetuning(const BaseNetwork& base, const std::string& data,
                           const FinetuneOptions& options = {});

// Divides a plan into stages of gradual unfreezing: the head, then one more block, then twice as
// many each time, up to those of the plan. Each stage starts from the best weights of the preceding
// one, in `folder_of(stage)`. The last stage is the plan itself.
std::vector<Finetuning> in_stages(const Finetuning& plan, int64_t epochs_of_a_stage,
                                  const std::function<std::string(size_t stage)>& folder_of);

// Loss and accuracy before or after fine-tuning.
struct FinetuneScore {
  Evaluation validation, test;
};
// Scores of the base with its untrained new head, and of a run of the plan with its best weights. A
// missing part has 0 samples.
FinetuneScore score_before(const Finetuning& plan);
FinetuneScore score_after(const Finetuning& plan, const std::filesystem::path& folder);

}  // namespace artel::transfer
