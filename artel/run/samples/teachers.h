// The teachers of a run (distil.teachers).
#pragma once

#include <memory>

#include "artel/run/config/setup.h"
#include "artel/train/step/teacher.h"

namespace artel {

// Opens the teachers of a configuration; null if it has none. Computes their outputs now if they
// can be cached (distil.cache). Throws if a teacher does not exist, has no weights, or has outputs
// of another shape than `student`. Warns if the student is larger than its teachers.
std::shared_ptr<Teacher> open_teacher(const RunConfig& config, const RunData& data,
                                      const Model& student, int threads);

}  // namespace artel
