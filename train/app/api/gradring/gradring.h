// SPDX-License-Identifier: Apache-2.0
// The whole API: train a model of your own on data of your own, on one or more ranks. docs/cpp_api.md describes it.
#pragma once

#include <gradring/dataset.h>
#include <gradring/error.h>
#include <gradring/model.h>
#include <gradring/options.h>
#include <gradring/training.h>
#include <gradring/version.h>
#include <gradring/weights.h>
