// Notices a loss that explodes or stands still. (One that is no number ends a run.)
//
//   artel::observe::LossWatch watch;
//   if (const auto trouble = watch.add(step, loss)) artel::println("{}", *trouble);
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace artel::observe {

class LossWatch {
 public:
  // What is wrong after this step, in a sentence: once for each trouble, and again only if it was
  // over in between. Losses that are not finite are left out.
  std::optional<std::string> add(int64_t step, double loss);

 private:
  bool explodes() const;
  bool stands(int64_t step) const;

  int64_t seen_ = 0;                       // losses
  double first_ = 0;                       // their mean over the first ones
  double mean_ = 0;                        // over the last ones
  double lowest_ = 0;                      // of such means
  int64_t lowest_step_ = 0;                // when it fell clearly for the last time
  bool exploded_ = false, stood_ = false;  // said already
};

}  // namespace artel::observe
