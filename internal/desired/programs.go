// Copyright 2026 The tinker-operator authors.
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	"github.com/tinker-operator/tinker-operator/api/v1alpha1"
	"github.com/tinker-operator/tinker-operator/api/v1alpha1/environment"
	"github.com/tinker-operator/tinker-operator/internal/contract"
)

// The runner's program and its folders in the container of an environment's functions. All that functions write to the
// disk is in temporaryDir.
const (
	runnerContainer = "install-runner"
	runnerDir       = "/opt/tinker-operator"
	runnerProgram   = runnerDir + "/runner"
	socketDir       = "/run/tinker-operator/program"
	temporaryDir    = "/tmp"
	scratchDir      = temporaryDir + "/runner"

	runnerVolume = "tinker-operator-runner"
	socketVolume = "tinker-operator-program"
)

// Sizes of the volumes of the runner's program and of its socket.
const (
	runnerLimit = "64Mi"
	socketLimit = "1Mi"
)

// The memory that the runner itself needs in its container, and the minimum that a process is given of the rest.
const (
	runnerBytes       = 64 << 20
	leastProcessBytes = 32 << 20
)

// program is a container that runs the functions or the agent of an environment, or the policy's programs.
type program struct {
	// ID names its runner.
	ID string `json:"id"`
	contract.Execution
}

// executionOf returns where an environment's functions, its agent and the policy's programs run; nil if there are none
// of these. The processes of functions share the memory of their container, and the processes of an agent the memory of
// its own.
func executionOf(spec *v1alpha1.Execution, definition contract.Definition) *contract.Execution {
	processes, agents := definition.Processes(), definition.AgentProcesses()
	if processes == 0 && agents == 0 && !definition.RunsPrograms() {
		return nil
	}
	given := ptr.Deref(spec, v1alpha1.Execution{})
	limit, ok := given.Resources.Limits[corev1.ResourceMemory]
	if !ok {
		limit = resource.MustParse(defaultMemoryLimit)
	}
	made := &contract.Execution{FunctionImage: given.FunctionImage, Container: containerOf(given.Container)}
	if given.Pods != nil {
		made.Pods = encode(given.Pods)
	}
	rest := limit.Value() - runnerBytes
	if processes > 0 {
		made.ProcessBytes = max(rest/processes, leastProcessBytes)
	}
	if agents > 0 {
		made.AgentBytes = max(rest/agents, leastProcessBytes)
	}
	if definition.RunsPrograms() {
		made.SandboxBytes = max(rest, leastProcessBytes)
	}
	return made
}

// programs returns the containers of functions, by the names of their environments. Environments with equal functions
// share one.
func (p Pins) programs() map[string]program {
	return p.containers(contract.Definition.ProgramID, func(contract.Definition) bool { return true })
}

// agents returns the containers of agents, by the names of their environments. Environments with equal agents share
// one. An agent whose network is the gateway could do nothing with a Secret but let the policy read it.
func (p Pins) agents() map[string]program {
	return p.containers(contract.Definition.AgentID, func(definition contract.Definition) bool {
		return definition.Agent().Network == environment.NetworkOpen
	})
}

// sandboxes returns the containers of the policy's programs, by the names of their environments. Environments with
// equal containers share one: programs of one of them may meet programs of another.
func (p Pins) sandboxes() map[string]program {
	return p.containers(contract.Definition.SandboxID, func(contract.Definition) bool { return false })
}

// containers returns a container for each identity, by the name of the first environment with that identity. A
// container has variables from Secrets only if it is trusted with them.
func (p Pins) containers(idOf func(contract.Definition) string,
	trusted func(contract.Definition) bool) map[string]program {
	containers, known := map[string]program{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		definition := p[name].Definition
		id := idOf(definition)
		if id == "" || known[id] {
			continue
		}
		known[id] = true
		execution := *definition.Execution
		if !trusted(definition) {
			execution.Env = valuesOf(execution.Container)
		}
		containers[name] = program{ID: id, Execution: execution}
	}
	return containers
}

// runProgram adds the container of an environment's functions, the n-th sidecar, to a pod. It is a native sidecar that
// shares nothing but the socket with the pod's main container.
func runProgram(spec *corev1.PodSpec, n, name string, p program, settings Settings) error {
	main := &spec.Containers[0]
	installRunner(spec)
	socket := emptyVolume(socketVolume+"-"+n, socketLimit)
	spec.Volumes = append(spec.Volumes, socket)
	container, err := programContainer(spec, n, name, p, settings,
		[]string{"--socket", socketDir + "/" + contract.RunnerSocket},
		corev1.VolumeMount{Name: socket.Name, MountPath: socketDir})
	if err != nil {
		return err
	}
	container.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
	spec.InitContainers = append(spec.InitContainers, container)
	main.VolumeMounts = append(main.VolumeMounts,
		corev1.VolumeMount{Name: socket.Name, MountPath: contract.ProgramsDir + "/" + p.ID})
	return nil
}

// gvisorMounts begins the names of the annotations by which gVisor knows a volume; the volume's name follows.
const gvisorMounts = "dev.gvisor.spec.mount."

// shareSockets lets the containers of a pod with a runtime class connect through the sockets of its runners. In gVisor
// each container has its own view of a volume, in which the sockets of other containers do not exist, unless
// annotations of the pod say that the pod alone uses the volume. Other runtimes ignore them.
func shareSockets(made *corev1.PodTemplateSpec) {
	if made.Spec.RuntimeClassName == nil {
		return
	}
	shared := map[string]string{}
	for _, volume := range made.Spec.Volumes {
		if strings.HasPrefix(volume.Name, socketVolume+"-") {
			shared[gvisorMounts+volume.Name+".share"], shared[gvisorMounts+volume.Name+".type"] = "pod", "bind"
		}
	}
	made.Annotations = mergedMap(shared, made.Annotations)
}

// programContainer returns the container of a program, whose runner listens as the arguments listen say. It adds the
// container's volumes to the pod, and an init container that installs its packages.
func programContainer(spec *corev1.PodSpec, n, name string, p program, settings Settings, listen []string,
	mounts ...corev1.VolumeMount) (corev1.Container, error) {
	main, temporary := spec.Containers[0], emptyVolume(serverVolume+"-"+n, serverLimit)
	container := corev1.Container{
		Name: serverContainerName(name), Image: settings.PythonImage, ImagePullPolicy: main.ImagePullPolicy,
		Command:   slices.Concat([]string{runnerProgram}, listen, []string{"--scratch", scratchDir}),
		Resources: resources("50m"), SecurityContext: main.SecurityContext,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: slices.Concat([]corev1.VolumeMount{{Name: runnerVolume, MountPath: runnerDir, ReadOnly: true}}, mounts,
			[]corev1.VolumeMount{{Name: temporary.Name, MountPath: temporaryDir}}),
	}
	if p.Image != "" {
		container.Image = p.Image
	}
	requestStorage(&container, temporary)
	if err := give(&container, name, p.Container); err != nil {
		return corev1.Container{}, err
	}
	spec.Volumes = append(spec.Volumes, temporary)
	addPackages(spec, n, &container, p, settings)
	return container, nil
}

// installRunner adds the init container that copies the runner into a volume for containers with users' images, unless
// the pod has it already.
func installRunner(spec *corev1.PodSpec) {
	if slices.ContainsFunc(spec.InitContainers, func(c corev1.Container) bool { return c.Name == runnerContainer }) {
		return
	}
	main, volume := spec.Containers[0], emptyVolume(runnerVolume, runnerLimit)
	bounds := main.Resources.DeepCopy()
	bounds.Claims = nil
	container := corev1.Container{
		Name: runnerContainer, Image: main.Image, ImagePullPolicy: main.ImagePullPolicy,
		Command: []string{"/runner", "--install", runnerProgram},
		// It ends before the main container begins, so it does not add to the pod's requests. A quota may require resources
		// of each container.
		Resources:       *bounds,
		SecurityContext: main.SecurityContext,
		VolumeMounts:    []corev1.VolumeMount{{Name: volume.Name, MountPath: runnerDir}},
	}
	spec.Volumes = append(spec.Volumes, volume)
	spec.InitContainers = append(spec.InitContainers, container)
}
