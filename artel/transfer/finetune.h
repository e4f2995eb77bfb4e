// Fine-tuning: a base learns other classes, all of it or only its end.
//
//   const artel::transfer::Finetuning plan =
//       artel::transfer::plan_finetuning(base, "flowers", {.train = "last 2"});
//   artel::Run run(plan.config, {.out = "runs/flowers"});
//   run.train();
//
// A plan is an ordinary configuration: `artel finetune --print` writes it as TOML, and `artel
// train` gives the same bits.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "artel/run/run.h"
#include "artel/transfer/base_network.h"
#include "artel/transfer/blocks.h"

namespace artel::transfer {

// How long fine-tuning takes at most: few samples make few steps in an epoch.
struct FinetuneLength {
  int64_t batch_size, epochs, patience;
};
FinetuneLength finetune_length(int64_t samples, bool head_only);

struct FinetuneOptions {
  // Which blocks are trained (blocks.h), or "auto": more of them the more samples there are.
  std::string train = "auto";
  // Low-rank adapters of this rank (nn/adapters.h) are trained besides the head, in place of
  // blocks; 0: none. For transformers.
  int64_t lora = 0;
  bool new_head = false;  // also if the head of the base tells the same classes
  int64_t side = 0;       // of images; 0: the base's
  double rate = 0;        // learning rate of the head; 0: by what is trained
  // The rate of the last block before the head, as a share of the head's, and of each block further
  // down as a share of that of the one above it.
  double below = 0.1, decay = 0.8;
  std::vector<std::string> overrides = {};  // of the configuration, after all else
};

struct Finetuning {
  RunConfig config;
  std::vector<Block> blocks;  // of the network with its new head
  std::vector<bool> trained;
  bool keeps_head = false;
  RunData data;                    // opened once
  std::vector<std::string> notes;  // what was decided and why, for people
};

// Throws for data that cannot be learnt from: one class only, a class with a single sample, samples
// that do not fit the base.
Finetuning plan_finetuning(const BaseNetwork& base, const std::string& data,
                           const FinetuneOptions& options = {});

// The same in stages, for gradual unfreezing: first the head, then one block more, then twice as
// many each time, up to those of the plan. Each stage begins with the best weights of the one
// before it; `folder_of` says where those are. The last one is the plan itself.
std::vector<Finetuning> in_stages(const Finetuning& plan, int64_t epochs_of_a_stage,
                                  const std::function<std::string(size_t stage)>& folder_of);

// Loss and accuracy of a part, before or after.
struct FinetuneScore {
  Evaluation validation, test;
};
// What the base with its new head says before it has learnt anything, and what a run of the plan
// has reached with its best weights. A part that the data does not have counts no samples.
FinetuneScore score_before(const Finetuning& plan);
FinetuneScore score_after(const Finetuning& plan, const std::filesystem::path& folder);

}  // namespace artel::transfer
