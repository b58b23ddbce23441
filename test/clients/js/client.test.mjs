// The JavaScript client of Kubernetes against the server that KUBECONFIG names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as k8s from '@kubernetes/client-node';

const kubeconfig = new k8s.KubeConfig();
kubeconfig.loadFromDefault();
const core = kubeconfig.makeApiClient(k8s.CoreV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(kubeconfig);
const namespace = 'js';

const configMap = (name, data, labels) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, labels }, data });
const create = (body) => core.createNamespacedConfigMap({ namespace, body });
const read = (name) => core.readNamespacedConfigMap({ namespace, name });
const patch = (name, body, type, more = {}) =>
	core.patchNamespacedConfigMap({ namespace, name, body, ...more }, k8s.setHeaderOptions('Content-Type', type));

/** Demands that the call is refused with the code and the reason. */
async function refused(call, code, reason) {
	await assert.rejects(call, (e) => {
		assert.equal(e.code, code, e.message);
		assert.equal(JSON.parse(e.body).reason, reason);
		return true;
	});
}

test('objects are created, read, replaced and deleted', async () => {
	const first = await create(configMap('flags', { mode: 'blue' }));
	assert.equal(first.metadata.namespace, namespace);
	assert.ok(first.metadata.uid && first.metadata.resourceVersion);
	assert.ok(first.metadata.creationTimestamp instanceof Date);
	await refused(create(configMap('flags')), 409, 'AlreadyExists');

	const replace = (body) => core.replaceNamespacedConfigMap({ namespace, name: 'flags', body });
	const second = await replace({ ...first, data: { mode: 'green' } });
	assert.notEqual(second.metadata.resourceVersion, first.metadata.resourceVersion);
	await refused(replace({ ...first, data: { mode: 'red' } }), 409, 'Conflict');
	assert.deepEqual((await read('flags')).data, { mode: 'green' });

	const status = await core.deleteNamespacedConfigMap({ namespace, name: 'flags' });
	assert.equal(status.status, 'Success');
	await refused(read('flags'), 404, 'NotFound');
});

test('binary data comes back as it went', async () => {
	const bytes = Buffer.from([0, 1, 254, 255]).toString('base64');
	await create({ ...configMap('raw'), binaryData: { bytes } });
	assert.equal((await read('raw')).binaryData.bytes, bytes);
});

test('every kind of patch, and apply with its conflicts', async () => {
	await create(configMap('patched', { a: '1', b: '2' }));
	const strategic = await patch('patched', { data: { a: 'strategic' } }, k8s.PatchStrategy.StrategicMergePatch);
	assert.deepEqual(strategic.data, { a: 'strategic', b: '2' });
	const merged = await patch('patched', { data: { b: null } }, k8s.PatchStrategy.MergePatch);
	assert.deepEqual(merged.data, { a: 'strategic' });
	const json = await patch('patched', [{ op: 'replace', path: '/data/a', value: 'json' }], k8s.PatchStrategy.JsonPatch);
	assert.deepEqual(json.data, { a: 'json' });

	const apply = (a, more) => patch('patched', configMap('patched', { a }), k8s.PatchStrategy.ServerSideApply, more);
	await refused(apply('mine', { fieldManager: 'js' }), 409, 'Conflict');
	const applied = await apply('mine', { fieldManager: 'js', force: true });
	assert.deepEqual(applied.data, { a: 'mine' });
	assert.ok(applied.metadata.managedFields.some((m) => m.manager === 'js' && m.operation === 'Apply'));
});

test('lists by label, in pages, and over all namespaces', async () => {
	for (const name of ['l1', 'l2', 'l3']) await create(configMap(name, {}, { listed: 'yes' }));
	const names = (list) => list.items.map((o) => o.metadata.name);
	const labelSelector = 'listed=yes';
	assert.deepEqual(names(await core.listConfigMapForAllNamespaces({ labelSelector })), ['l1', 'l2', 'l3']);
	const page = await core.listNamespacedConfigMap({ namespace, labelSelector, limit: 2 });
	assert.deepEqual(names(page), ['l1', 'l2']);
	const rest = await core.listNamespacedConfigMap({ namespace, labelSelector, limit: 2, _continue: page.metadata._continue });
	assert.deepEqual(names(rest), ['l3']);
	await core.deleteCollectionNamespacedConfigMap({ namespace, labelSelector });
	assert.deepEqual(names(await core.listNamespacedConfigMap({ namespace, labelSelector })), []);
});

test('a watch shows each change once, in order', async () => {
	const { metadata } = await core.listNamespacedConfigMap({ namespace });
	const seen = [];
	let enough;
	const all = new Promise((resolve) => (enough = resolve));
	const stream = await new k8s.Watch(kubeconfig).watch(
		`/api/v1/namespaces/${namespace}/configmaps`,
		{ resourceVersion: metadata.resourceVersion, labelSelector: 'watched=yes' },
		(type, object) => {
			seen.push(`${type} ${object.data?.n}`);
			if (seen.length === 3) enough();
		},
		(error) => enough(error),
	);
	await create(configMap('watched', { n: '1' }, { watched: 'yes' }));
	await patch('watched', { data: { n: '2' } }, k8s.PatchStrategy.MergePatch);
	await core.deleteNamespacedConfigMap({ namespace, name: 'watched' });
	await all;
	stream.abort();
	assert.deepEqual(seen, ['ADDED 1', 'MODIFIED 2', 'DELETED 2']);
});

test('an informer follows', async () => {
	const informer = k8s.makeInformer(kubeconfig, `/api/v1/namespaces/${namespace}-informed/configmaps`, () =>
		core.listNamespacedConfigMap({ namespace: `${namespace}-informed` }));
	const next = (event) => new Promise((resolve) => informer.on(event, resolve));
	const added = next('add');
	await informer.start();
	const body = configMap('informed', { n: '1' });
	body.metadata.namespace = `${namespace}-informed`;
	await objects.create(body);
	assert.equal((await added).data.n, '1');
	const updated = next('update');
	await objects.patch({ ...body, data: { n: '2' } });
	assert.equal((await updated).data.n, '2');
	const deleted = next('delete');
	await objects.delete(body);
	assert.equal((await deleted).metadata.name, 'informed');
	await informer.stop();
});

test('namespaces are made, listed and deleted', async () => {
	await core.createNamespace({ body: { metadata: { name: 'js-made' } } });
	const list = await core.listNamespace();
	assert.ok(list.items.some((n) => n.metadata.name === 'js-made' && n.status.phase === 'Active'));
	await core.deleteNamespace({ name: 'js-made' });
});
